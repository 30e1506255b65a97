/* The editor: a text area with numbered lines, completion, and a mark at the line that the server stumbled over. */

import { h, replace, uniqueId } from "../../kit/dom.js";
import { Completion } from "./completion.js";

/* `run` is called for Ctrl+Enter. Gives an element with `text()`, `write(text)`, `chosen()`, `select(offset)` and `mark(line)`. */
export function editor({ value, words, run, changed }) {
  const area = h("textarea", {
    id: uniqueId("sql"),
    class: "code",
    rows: 10,
    wrap: "off",
    spellcheck: "false",
    autocomplete: "off",
    autocapitalize: "off",
    value,
  });
  const numbers = h("div", { class: "line-numbers", "aria-hidden": "true" });
  const completion = new Completion(area, words);
  let marked = 0;

  function draw() {
    const count = area.value.split("\n").length;
    replace(numbers, Array.from({ length: count }, (_, at) => h("span", { class: at + 1 === marked && "marked" }, at + 1)));
    numbers.scrollTop = area.scrollTop;
  }

  function edited() {
    marked = 0;
    draw();
    changed(area.value);
  }

  area.addEventListener("input", edited);
  area.addEventListener("change", edited);
  area.addEventListener("scroll", () => {
    numbers.scrollTop = area.scrollTop;
  });
  area.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    completion.close();
    run();
  });
  draw();

  const label = h("label", { for: area.id }, "Statements, separated by semicolons");
  const element = h("div", { class: "editor" }, label, h("div", { class: "editor-body" }, numbers, h("div", { class: "editor-area" }, area, completion.element)));
  return Object.assign(element, {
    text: () => area.value,
    write(text) {
      area.value = text;
      edited();
      area.focus();
    },
    /* What is selected, and where it begins; all of it when nothing is. */
    chosen() {
      const { selectionStart: start, selectionEnd: end } = area;
      return start === end ? { text: area.value, start: 0 } : { text: area.value.slice(start, end), start };
    },
    select(offset) {
      area.focus();
      area.setSelectionRange(offset, offset);
    },
    mark(line) {
      marked = line;
      draw();
    },
  });
}
