/* The command palette: type a part of a name, and go there or do it. Views and actions are known; topics are asked for. */

import { api, at } from "../kit/api.js";
import { h, replace, uniqueId } from "../kit/dom.js";
import { icon } from "../kit/icons.js";
import { ROUTES } from "../routes.js";
import { showKeys } from "./keys.js";
import { setTheme, THEMES } from "./theme.js";

const TOPICS_MAX = 8;
const PLACE_OF_TYPE = { queue: "queues", heap: "heaps", log: "topics" };

export class Palette {
  constructor(router, person) {
    this.router = router;
    this.person = person;
    this.dialog = null;
  }

  open() {
    if (this.dialog?.open) return;
    this.asking?.abort();
    this.asking = new AbortController();
    this.list = h("ul", { class: "palette-list", role: "listbox", id: uniqueId("palette"), "aria-label": "What was found" });
    this.input = h("input", {
      type: "text",
      role: "combobox",
      class: "palette-input",
      placeholder: "A view, a topic, an action",
      autocomplete: "off",
      spellcheck: "false",
      "aria-label": "Search",
      "aria-expanded": true,
      "aria-controls": this.list.id,
      "aria-autocomplete": "list",
      on: { input: () => this.search(), keydown: (event) => this.pressed(event) },
    });
    this.said = h("p", { class: "palette-said", role: "status" });
    const dialog = (this.dialog = h("dialog", { class: "palette", "aria-label": "Search" }, this.input, this.list, this.said));
    dialog.addEventListener("close", () => this.closed(dialog));
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
    document.body.append(dialog);
    dialog.showModal();
    this.input.focus();
    this.search();
  }

  /* The browser tells of it a while after; somebody may have opened it again by then. */
  closed(dialog) {
    dialog.remove();
    if (this.dialog !== dialog) return;
    this.asking.abort();
    this.dialog = null;
  }

  // ---- finding

  async search() {
    this.asking.abort();
    const { signal } = (this.asking = new AbortController());
    const text = this.input.value.trim();
    const known = [...this.views(), ...this.actions()].filter(({ label }) => fits(label, text));
    this.show(known);
    if (text === "") return;
    try {
      const topics = await this.topics(text, signal);
      if (!signal.aborted) this.show([...known, ...topics]);
    } catch (error) {
      if (!signal.aborted) this.said.textContent = `Topics are not searched: ${error.message}`;
    }
  }

  views() {
    const may = (scope) => !scope || this.person.known === null || this.person.known.may(scope);
    const offered = ROUTES.filter((route) => route.label && !route.open && may(route.scope));
    const go = (path) => () => this.router.go(path);
    return offered.map(({ label, path, name, key }) => ({ label, name, hint: key && `g ${key}`, run: go(path) }));
  }

  actions() {
    const named = (label) => `Theme: ${label.toLowerCase()}`;
    const themes = THEMES.map(({ name, label, icon }) => ({ label: named(label), name: icon, run: () => setTheme(name) }));
    const keys = { label: "Show the keys", name: "info", hint: "?", run: showKeys };
    const reference = { label: "API reference", name: "link", run: () => window.open("/v0/docs", "_blank", "noopener") };
    const out = { label: "Sign out", name: "out", run: () => this.person.signOut() };
    return [...themes, keys, reference, ...(this.person.known?.user ? [out] : [])];
  }

  async topics(text, signal) {
    const found = await api.get("/v0/topics", { query: { contains: text, page_size: TOPICS_MAX }, signal });
    return found.topics.map(({ topic, type }) => {
      const place = PLACE_OF_TYPE[type] ?? "topics";
      return { label: topic, name: place, hint: type, run: () => this.router.go(`/${place}${at`/${topic}`}`) };
    });
  }

  // ---- choosing

  show(items) {
    this.items = items;
    this.said.textContent = items.length === 0 ? "Nothing has that in its name." : "";
    replace(
      this.list,
      items.map((item, index) =>
        h(
          "li",
          { role: "option", id: `${this.list.id}-${index}`, class: "palette-item", on: { click: () => this.choose(index) } },
          icon(item.name),
          h("span", { class: "cut" }, item.label),
          item.hint && h("span", { class: "palette-hint" }, item.hint),
        ),
      ),
    );
    this.activate(0);
  }

  activate(index) {
    const last = this.items.length - 1;
    this.active = index < 0 ? last : index > last ? 0 : index;
    [...this.list.children].forEach((line, at) => line.setAttribute("aria-selected", String(at === this.active)));
    const line = this.list.children[this.active];
    if (line) this.input.setAttribute("aria-activedescendant", line.id);
    else this.input.removeAttribute("aria-activedescendant");
    line?.scrollIntoView({ block: "nearest" });
  }

  pressed(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      this.activate(this.active + step);
    } else if (event.key === "Enter") {
      event.preventDefault();
      this.choose(this.active);
    }
  }

  choose(index) {
    const item = this.items[index];
    if (!item) return;
    this.dialog.close();
    item.run();
  }
}

/* Whether all words are in a name. */
function fits(label, text) {
  const name = label.toLowerCase();
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => name.includes(word));
}
