/* A list of very many rows, of which only those that can be seen are in the page.
 *
 * It scrolls over a spacer as high as all rows would be, and draws the rows at the place it has come to. Browsers have no
 * elements higher than some ten million pixels; for more rows than that the spacer is shorter and a pixel of it stands for
 * several.
 *
 *   rowHeight  in pixels; the same for all
 *   count      how many rows there are
 *   row        (index) => an array of cells, each text or a node; null while it is not known: call `refresh` when it is
 *   label      what a screen reader calls the list
 *   columns    labels of the cells, for a head above the rows; may be left out
 *   class      for the widths of the cells: `.my-list .virtual-row { grid-template-columns: … }`
 * Arrow keys, Page Up, Page Down, Home and End move through it; Enter opens the first link of a row.
 * Gives an element with `update({ count })`, `refresh()`, `scrollTo(index)` and `range()`, the first and last row seen. */

import { h, replace, uniqueId } from "./dom.js";

const SPACER_PX_MAX = 8_000_000;
const EXTRA_ROWS = 6;
const NOT_YET = "…";

export function virtualList(options) {
  const list = new DrawnList(options);
  return Object.assign(list.element, {
    update: (changed) => list.update(changed),
    refresh: () => list.draw(true),
    scrollTo: (index) => list.activate(index),
    range: () => list.range(),
  });
}

class DrawnList {
  constructor({ rowHeight, count, row, label, columns = null, class: name = "" }) {
    this.rowHeight = rowHeight;
    this.row = row;
    this.columns = columns;
    this.active = 0;
    this.id = uniqueId("list");
    this.drawn = new Map();
    this.shown = h("div", { class: "virtual-shown", role: "rowgroup" });
    this.spacer = h("div", { class: "virtual-spacer", role: "presentation" }, this.shown);
    this.head = columns && h("div", { class: "virtual-head", role: "rowgroup" }, headRow(columns));
    this.element = h(
      "div",
      { class: ["virtual", name], role: "grid", tabindex: "0", "aria-label": label },
      this.head,
      this.spacer,
    );
    this.element.addEventListener("scroll", () => this.draw(false), { passive: true });
    this.element.addEventListener("keydown", (event) => this.pressed(event));
    this.element.addEventListener("click", (event) => this.clicked(event));
    new ResizeObserver(() => this.draw(false)).observe(this.element);
    this.update({ count });
  }

  update({ count }) {
    this.count = count;
    this.active = Math.max(0, Math.min(this.active, count - 1));
    this.height = Math.min(count * this.rowHeight, SPACER_PX_MAX);
    this.spacer.style.setProperty("height", `${this.height}px`);
    // The head is a row as well.
    this.element.setAttribute("aria-rowcount", String(count + (this.columns ? 1 : 0)));
    this.draw(true);
  }

  // ---- where it stands

  get viewHeight() {
    return Math.max(0, this.element.clientHeight - (this.head?.offsetHeight ?? 0));
  }

  get visibleRows() {
    return Math.max(1, Math.floor(this.viewHeight / this.rowHeight));
  }

  /* How many pixels of rows one pixel of scrolling stands for. */
  get scale() {
    const scrollable = this.height - this.viewHeight;
    return scrollable > 0 ? (this.count * this.rowHeight - this.viewHeight) / scrollable : 1;
  }

  get top() {
    return this.element.scrollTop * this.scale;
  }

  range() {
    const first = Math.floor(this.top / this.rowHeight);
    return [Math.min(first, Math.max(0, this.count - 1)), Math.min(this.count - 1, first + this.visibleRows)];
  }

  // ---- drawing

  draw(afresh) {
    const [first, last] = this.range();
    const from = Math.max(0, first - EXTRA_ROWS);
    const to = Math.min(this.count - 1, last + EXTRA_ROWS);
    for (const [index, line] of this.drawn) {
      if (index < from || index > to || afresh) {
        line.remove();
        this.drawn.delete(index);
      }
    }
    let next = null;
    for (let index = to; index >= from; index -= 1) {
      let line = this.drawn.get(index);
      if (line === undefined) {
        line = this.makeLine(index);
        this.drawn.set(index, line);
        this.shown.insertBefore(line, next);
      }
      next = line;
    }
    // The rows stand where they would stand in a list of full height, less what scrolling has come short of it.
    const offset = from * this.rowHeight - (this.top - this.element.scrollTop);
    this.shown.style.setProperty("transform", `translateY(${offset}px)`);
    this.showActive();
  }

  makeLine(index) {
    const cells = this.row(index);
    const place = index + (this.columns ? 2 : 1);
    const line = h(
      "div",
      { class: ["virtual-row", index % 2 === 1 && "odd"], role: "row", id: `${this.id}-${index}`, "aria-rowindex": place },
      (cells ?? [NOT_YET]).map((cell) => h("div", { role: "gridcell", class: "virtual-cell" }, cell)),
    );
    line.dataset.index = index;
    line.style.setProperty("height", `${this.rowHeight}px`);
    line.toggleAttribute("data-waiting", cells === null);
    // The list itself is what Tab leads to; Enter opens this one.
    line.querySelector("a[href]")?.setAttribute("tabindex", "-1");
    return line;
  }

  showActive() {
    for (const [index, line] of this.drawn) {
      const is = index === this.active;
      if (line.classList.contains("active") !== is) line.classList.toggle("active", is);
    }
    if (this.drawn.has(this.active)) this.element.setAttribute("aria-activedescendant", `${this.id}-${this.active}`);
    else this.element.removeAttribute("aria-activedescendant");
  }

  // ---- moving

  activate(index) {
    if (this.count === 0) return;
    this.active = Math.max(0, Math.min(index, this.count - 1));
    const above = this.active * this.rowHeight;
    const below = above + this.rowHeight - this.viewHeight;
    if (above < this.top) this.element.scrollTop = above / this.scale;
    else if (below > this.top) this.element.scrollTop = Math.ceil(below / this.scale);
    this.draw(false);
  }

  pressed(event) {
    if (event.target !== this.element || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = this.visibleRows;
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.count, End: this.count };
    if (event.key in moves) {
      event.preventDefault();
      this.activate(this.active + moves[event.key]);
    } else if (event.key === "Enter") {
      this.drawn.get(this.active)?.querySelector("a[href], button")?.click();
    }
  }

  clicked(event) {
    const line = event.target.closest(".virtual-row[data-index]");
    if (line === null) return;
    this.active = Number(line.dataset.index);
    this.showActive();
  }
}

function headRow(columns) {
  const heads = columns.map((label) => h("div", { role: "columnheader", class: "virtual-cell" }, label));
  return replace(h("div", { class: "virtual-row", role: "row", "aria-rowindex": "1" }), ...heads);
}
