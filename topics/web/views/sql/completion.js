/* The list of words at the caret while somebody types: Tab takes the first, arrows choose another one, which Enter takes as
 * well, and Escape closes it. */

import { h, replace, uniqueId } from "../../kit/dom.js";
import { matching } from "./vocabulary.js";

const SHOWN_MAX = 8;
const TYPED_MIN = 2;
const LINE_PX = 20;
const TYPED = /[A-Za-z_"][\w."]*$/;

export class Completion {
  /* `words` gives those there are by now. */
  constructor(area, words) {
    this.area = area;
    this.words = words;
    this.items = [];
    this.active = 0;
    /* Whether somebody has moved to one of them. */
    this.isChosen = false;
    this.element = h("ul", { class: "completion", role: "listbox", "aria-label": "Completions", id: uniqueId("completion"), hidden: true });
    area.setAttribute("aria-autocomplete", "list");
    area.setAttribute("aria-controls", this.element.id);
    // What is pasted is not being typed.
    area.addEventListener("input", (event) => (event.inputType === "insertText" || this.isOpen ? this.look() : this.close()));
    area.addEventListener("keydown", (event) => this.pressed(event));
    area.addEventListener("blur", () => this.close());
  }

  get isOpen() {
    return !this.element.hidden;
  }

  /* With `asked` also when nothing is typed yet. */
  look(asked = false) {
    const typed = this.typed();
    const found = typed.length >= TYPED_MIN || asked ? matching(this.words(), typed.replace(/^"/, ""), SHOWN_MAX) : [];
    if (found.length === 0) {
      this.close();
      return;
    }
    this.items = found;
    this.active = 0;
    this.isChosen = false;
    this.element.hidden = false;
    this.place();
    this.draw();
  }

  typed() {
    const { selectionStart: at, selectionEnd: end, value } = this.area;
    return at === end ? (TYPED.exec(value.slice(0, at))?.[0] ?? "") : "";
  }

  /* Below the line of the caret. */
  place() {
    const before = this.area.value.slice(0, this.area.selectionStart).split("\n");
    const column = before.at(-1).length - this.typed().length;
    this.element.style.setProperty("--top", `${before.length * LINE_PX - this.area.scrollTop}px`);
    this.element.style.setProperty("--left", `calc(${column}ch - ${this.area.scrollLeft}px)`);
  }

  draw() {
    const lines = this.items.map(({ word, about }, at) => {
      const id = `${this.element.id}-${at}`;
      // The focus stays in the editor.
      const take = (event) => {
        event.preventDefault();
        this.take(at);
      };
      return h("li", { role: "option", id, "aria-selected": at === this.active, on: { mousedown: take } }, h("span", { class: "mono" }, word), about && h("small", null, about));
    });
    replace(this.element, lines);
    this.area.setAttribute("aria-activedescendant", `${this.element.id}-${this.active}`);
  }

  pressed(event) {
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      this.look(true);
      return;
    }
    if (!this.isOpen || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      this.active = (this.active + step + this.items.length) % this.items.length;
      this.isChosen = true;
      this.draw();
    } else if (event.key === "Tab" || (event.key === "Enter" && this.isChosen)) {
      event.preventDefault();
      this.take(this.active);
    } else if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      this.close();
    }
  }

  take(at) {
    const { word } = this.items[at];
    const end = this.area.selectionStart;
    this.area.setRangeText(word, end - this.typed().length, end, "end");
    this.close();
    this.area.dispatchEvent(new Event("change"));
  }

  close() {
    this.element.hidden = true;
    this.items = [];
    this.area.removeAttribute("aria-activedescendant");
  }
}
