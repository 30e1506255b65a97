/* What is around the views: the menu at the side, which is a drawer on a phone, the notices, and the place for a view. */

import { h, replace, setText } from "../kit/dom.js";
import { logo } from "../kit/icons.js";
import { iconButton } from "../kit/state.js";
import { Menu } from "./menu.js";

const NAME = "topics";

export class Frame {
  constructor() {
    this.notices = h("div", { class: "notices" });
    this.main = h("main", { id: "main", tabindex: "-1" });
    this.spoken = h("p", { class: "unseen", role: "status" });
    this.isFirst = true;
  }

  begin(router, person, palette) {
    this.menu = new Menu(router, person, palette);
    this.opener = iconButton("menu", "Menu", () => this.openDrawer());
    this.opener.setAttribute("aria-expanded", "false");
    this.opener.setAttribute("aria-controls", "menu");
    const find = iconButton("search", "Search", () => palette.open());
    const name = h("a", { class: "top-name", href: "/" }, logo(), NAME);
    const bar = h("header", { class: "top-bar" }, this.opener, name, find);
    const scrim = h("div", { class: "scrim", on: { click: () => this.closeDrawer() } });
    this.content = h("div", { class: "content" }, bar, this.notices, this.main);
    const skip = h("a", { class: "skip", href: "#main", on: { click: (event) => this.skip(event) } }, "To the content");
    this.element = h("div", { class: "frame" }, skip, this.menu.element, scrim, this.content, this.spoken);
    this.menu.element.addEventListener("keydown", (event) => event.key === "Escape" && this.closeDrawer());
  }

  /* Show a view, whose route is null when there is none. */
  put(root, route) {
    this.closeDrawer();
    this.element.toggleAttribute("data-bare", Boolean(route?.open));
    this.menu.mark(route);
    replace(this.main, root);
    // Whoever moves by keyboard or hears the page goes on at the new view; who has just opened it begins at its top.
    if (!this.isFirst) this.main.focus({ preventScroll: true });
    this.isFirst = false;
  }

  titled(title) {
    document.title = `${title} · ${NAME}`;
    setText(this.spoken, title);
  }

  skip(event) {
    event.preventDefault();
    this.main.focus();
  }

  openDrawer() {
    this.element.setAttribute("data-drawer", "");
    this.opener.setAttribute("aria-expanded", "true");
    this.content.inert = true;
    this.menu.element.querySelector("a")?.focus();
  }

  closeDrawer() {
    if (!this.element.hasAttribute("data-drawer")) return;
    this.element.removeAttribute("data-drawer");
    this.opener.setAttribute("aria-expanded", "false");
    this.content.inert = false;
    this.opener.focus();
  }
}
