/* The menu: views by group, the palette, the theme, and who one is. What one may not see is not offered. */

import { h, replace } from "../kit/dom.js";
import { icon, logo } from "../kit/icons.js";
import { iconButton } from "../kit/state.js";
import { toast } from "../kit/toast.js";
import { GROUPS, ROUTES } from "../routes.js";
import { nextTheme, theme, THEMES } from "./theme.js";

export class Menu {
  constructor(router, person, palette) {
    this.router = router;
    this.person = person;
    this.links = new Map();
    this.places = h("div", { class: "menu-places" });
    this.foot = h("div", { class: "menu-foot" });
    const search = { type: "button", class: "menu-find", on: { click: () => palette.open() } };
    const find = h("button", search, icon("search"), "Search", h("kbd", null, "Ctrl K"));
    this.element = h(
      "nav",
      { class: "menu", id: "menu", "aria-label": "Views" },
      h("a", { class: "menu-name", href: "/" }, logo(), h("span", null, "topics")),
      find,
      this.places,
      this.foot,
    );
    person.changes.addEventListener("change", () => this.draw());
    this.draw();
  }

  draw() {
    const { known } = this.person;
    const offered = ROUTES.filter((route) => route.group && (known === null || known.may(route.scope)));
    this.links = new Map(offered.map((route) => [route.name, menuLink(route)]));
    const groups = GROUPS.map((group) => {
      const links = offered.filter((route) => route.group === group).map((route) => this.links.get(route.name));
      return links.length > 0 && h("div", { class: "menu-group" }, h("h2", null, group), links);
    });
    replace(this.places, groups);
    replace(this.foot, this.themeButton(), this.whoever());
    this.mark(this.route ?? null);
  }

  mark(route) {
    this.route = route;
    const current = route?.under ?? route?.name;
    for (const [name, link] of this.links) {
      if (name === current) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  }

  themeButton() {
    const turn = () => this.show(element, nextTheme());
    const element = h("button", { type: "button", class: "menu-theme quiet", on: { click: turn } });
    return this.show(element, THEMES.find(({ name }) => name === theme()));
  }

  show(element, chosen) {
    return replace(element, icon(chosen.icon), h("span", null, "Theme: ", chosen.label.toLowerCase()));
  }

  whoever() {
    const { known } = this.person;
    if (!known?.user) return null;
    const account = h("a", { href: "/account" }, icon("account"), h("span", { class: "cut" }, known.name));
    return h("div", { class: "menu-person" }, account, iconButton("out", "Sign out", () => this.signOut()));
  }

  async signOut() {
    try {
      await this.person.signOut();
    } catch (error) {
      toast(error.message, { kind: "bad" });
    }
  }
}

function menuLink({ name, label, path }) {
  return h("a", { class: "menu-link", href: path }, icon(name), label);
}
