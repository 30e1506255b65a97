/* What the lines of a chart are, as buttons that take a line away and bring it back. */

import { h, setText } from "../dom.js";

export class Legend {
  constructor(series, changed) {
    this.changed = changed;
    this.hidden = new Set();
    this.figures = new Map();
    this.element = h("div", { class: "legend" }, series.map((each, index) => this.button(each, index + 1)));
  }

  button({ name, label }, number) {
    const figure = h("span", { class: "legend-value" });
    this.figures.set(name, figure);
    const key = h("span", { class: `legend-key series-${number}`, "aria-hidden": "true" });
    const turn = () => this.turn(name, element);
    const element = h("button", { type: "button", class: "legend-item", on: { click: turn } }, key, label, figure);
    element.setAttribute("aria-pressed", "true");
    return element;
  }

  turn(name, element) {
    if (!this.hidden.delete(name)) this.hidden.add(name);
    element.setAttribute("aria-pressed", String(this.shows(name)));
    this.changed();
  }

  shows(name) {
    return !this.hidden.has(name);
  }

  /* The last value of each. */
  show(values) {
    for (const [name, text] of values) setText(this.figures.get(name), text);
  }
}
