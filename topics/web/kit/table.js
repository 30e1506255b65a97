/* A table of rows that change: sortable by its heads, and updated in place, so that nothing jumps under a pointer and the
 * focus stays where it is. For more than some hundred rows see `virtual.js`.
 *
 *   columns  [{ name, label, value(row), cell(row), align, sort, class }]: `value` is what is sorted by, and shown when
 *            there is no `cell`; `cell` gives text or a node; `align: "end"` for figures; `sort: false` for no sorting
 *   rows     to begin with; null while they are not known yet
 *   key      (row) => what names a row for ever
 *   sort     { name, descending }: what it is sorted by at first; without, rows stay in their order
 *   empty    a node that is shown when there is no row
 *   select   (rows) => … : gives each row a box, and is told what is chosen whenever that changes
 *   label    what a screen reader calls the table
 * Gives an element with `update(rows)`, `selected()` and `clear()`, which unchooses all. */

import { h, replace, setText } from "./dom.js";
import { icon } from "./icons.js";
import { loading } from "./state.js";

const FOCUSABLE = "a[href], button, input, select, textarea, [tabindex]";

export function table(options) {
  const drawn = new DrawnTable(options);
  drawn.update(options.rows ?? null);
  return Object.assign(drawn.element, {
    update: (rows) => drawn.update(rows),
    selected: () => drawn.selected(),
    clear: () => drawn.clear(),
  });
}

class DrawnTable {
  constructor({ columns, key, sort = null, empty = null, select = null, label = null }) {
    this.columns = columns;
    this.key = key;
    this.sort = sort;
    this.empty = empty ?? h("p", { class: "none" }, "Nothing there.");
    this.select = select;
    this.chosen = new Set();
    /* By key: the row as it was last given, its element and its cells. */
    this.drawn = new Map();
    this.rows = null;
    this.body = h("tbody");
    this.heads = new Map();
    this.all = select && checkbox("Choose all", () => this.chooseAll());
    this.table = h("table", { "aria-label": label }, h("thead", null, this.headRow()), this.body);
    this.element = h("div", { class: "table" });
  }

  headRow() {
    const heads = this.columns.map((column) => {
      const head = h("th", { scope: "col", class: classes(column) });
      const sortable = column.sort !== false && column.value !== undefined;
      if (sortable) {
        const turn = () => this.turn(column.name);
        const mark = icon("sort");
        head.append(h("button", { type: "button", class: "sort", on: { click: turn } }, column.label, mark));
      } else {
        head.append(column.label ?? "");
      }
      this.heads.set(column.name, head);
      return head;
    });
    return h("tr", null, this.select && h("th", { class: "choose" }, this.all), heads);
  }

  turn(name) {
    const descending = this.sort?.name === name ? !this.sort.descending : this.beginsDescending(name);
    this.sort = { name, descending };
    this.update(this.rows);
  }

  /* Of figures one wants to see the largest first. */
  beginsDescending(name) {
    const column = this.columns.find((each) => each.name === name);
    return (this.rows ?? []).some((row) => typeof column.value(row) === "number");
  }

  update(rows) {
    this.rows = rows;
    if (rows === null) {
      replace(this.element, loading());
      return;
    }
    if (rows.length === 0) {
      this.forgetAllBut(new Set());
      if (this.empty.parentNode !== this.element) replace(this.element, this.empty);
      return;
    }
    if (this.table.parentNode !== this.element) replace(this.element, this.table);
    this.showSort();
    const sorted = this.sorted(rows);
    const keys = sorted.map((row) => String(this.key(row)));
    this.forgetAllBut(new Set(keys));
    sorted.forEach((row, index) => this.place(this.drawRow(keys[index], row), index));
    this.showChosen();
  }

  sorted(rows) {
    const column = this.columns.find((each) => each.name === this.sort?.name);
    if (!column) return rows;
    const sign = this.sort.descending ? -1 : 1;
    return [...rows].sort((one, other) => sign * compare(column.value(one), column.value(other)));
  }

  showSort() {
    for (const [name, head] of this.heads) {
      if (name === this.sort?.name) head.setAttribute("aria-sort", this.sort.descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
  }

  forgetAllBut(keys) {
    for (const [key, { line }] of this.drawn) {
      if (keys.has(key)) continue;
      line.remove();
      this.drawn.delete(key);
      if (this.chosen.delete(key)) this.tellChosen();
    }
  }

  drawRow(key, row) {
    let known = this.drawn.get(key);
    if (known === undefined) {
      known = { row: {}, cells: this.columns.map((column) => h("td", { class: classes(column) })) };
      known.box = this.select && checkbox(`Choose ${key}`, () => this.choose(key, known.box.checked));
      known.line = h("tr", { data: { key } }, this.select && h("td", { class: "choose" }, known.box), known.cells);
      this.drawn.set(key, known);
    }
    become(known.row, row);
    this.columns.forEach((column, index) => show(known.cells[index], contentOf(column, known.row)));
    return known.line;
  }

  place(line, index) {
    const there = this.body.children[index];
    if (there !== line) this.body.insertBefore(line, there ?? null);
  }

  // ---- choosing

  selected() {
    return [...this.chosen].map((key) => this.drawn.get(key).row);
  }

  clear() {
    this.chosen.clear();
    this.showChosen();
    this.tellChosen();
  }

  choose(key, whether) {
    if (whether) this.chosen.add(key);
    else this.chosen.delete(key);
    this.showChosen();
    this.tellChosen();
  }

  chooseAll() {
    this.chosen = new Set(this.all.checked ? this.drawn.keys() : []);
    this.showChosen();
    this.tellChosen();
  }

  showChosen() {
    if (!this.select) return;
    for (const [key, { box, line }] of this.drawn) {
      box.checked = this.chosen.has(key);
      line.classList.toggle("chosen", box.checked);
    }
    this.all.checked = this.chosen.size > 0 && this.chosen.size === this.drawn.size;
    this.all.indeterminate = this.chosen.size > 0 && !this.all.checked;
  }

  tellChosen() {
    this.select(this.selected());
  }
}

/* Make one object like another, so that a listener that has it sees what it has become. */
function become(known, row) {
  for (const name of Object.keys(known)) if (!(name in row)) delete known[name];
  Object.assign(known, row);
}

function contentOf(column, row) {
  return column.cell ? column.cell(row) : (column.value(row) ?? "–");
}

function show(cell, content) {
  if (!(content instanceof Node)) {
    setText(cell, content ?? "");
    return;
  }
  const there = cell.firstChild;
  if (there !== null && (there === content || there.isEqualNode(content))) return;
  const focused = [...cell.querySelectorAll(FOCUSABLE)].indexOf(document.activeElement);
  replace(cell, content);
  if (focused >= 0) cell.querySelectorAll(FOCUSABLE)[focused]?.focus();
}

function compare(one, other) {
  if (one === other) return 0;
  // What is not known comes last, or first when turned around.
  if (one === null || one === undefined) return -1;
  if (other === null || other === undefined) return 1;
  if (typeof one === "number" && typeof other === "number") return one - other;
  return String(one).localeCompare(String(other), "en", { numeric: true });
}

function classes(column) {
  return [column.align === "end" && "end", column.class];
}

function checkbox(label, change) {
  return h("input", { type: "checkbox", "aria-label": label, on: { change } });
}
