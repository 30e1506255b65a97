/* A JSON value to look at: what has parts can be folded, what is long is cut with a button for the rest, and all of it can
 * be copied. */

import { copyButton } from "./copy.js";
import { h } from "./dom.js";
import { count } from "./format.js";

const CHARS_MAX = 500;
const PARTS_MAX = 100;
/* What lies deeper is folded at first. */
const OPEN_DEPTH = 2;

export function jsonView(value) {
  const whole = () => JSON.stringify(value, null, 2) ?? String(value);
  const tools = h("div", { class: "json-tools" }, copyButton(whole, "Copy the JSON"));
  return h("div", { class: "json" }, tools, node(value, 0));
}

function node(value, depth) {
  if (value === null || typeof value !== "object") return leaf(value);
  const parts = Array.isArray(value) ? value.map((part) => [null, part]) : Object.entries(value);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  if (parts.length === 0) return h("span", { class: "json-empty" }, open + close);
  const list = h("ul", { class: "json-parts" });
  const show = (from, to) => list.append(...parts.slice(from, to).map(([name, part]) => partLine(name, part, depth)));
  show(0, PARTS_MAX);
  if (parts.length > PARTS_MAX) list.append(rest(parts.length - PARTS_MAX, () => show(PARTS_MAX, parts.length)));
  const about = Array.isArray(value) ? `${count(parts.length)} items` : `${count(parts.length)} fields`;
  return h(
    "details",
    { class: "json-node", open: depth < OPEN_DEPTH },
    h("summary", null, h("span", { class: "json-mark" }, open), h("span", { class: "json-about" }, about, " ", close)),
    list,
    h("span", { class: "json-mark" }, close),
  );
}

function partLine(name, part, depth) {
  const label = name !== null && [h("span", { class: "json-name" }, JSON.stringify(name)), ": "];
  return h("li", null, label, node(part, depth + 1));
}

function leaf(value) {
  const kind = value === null ? "null" : typeof value;
  const text = JSON.stringify(value) ?? String(value);
  if (text.length <= CHARS_MAX) return h("span", { class: `json-${kind}` }, text);
  const shown = h("span", { class: `json-${kind}` }, text.slice(0, CHARS_MAX));
  const more = button(`… ${count(text.length - CHARS_MAX)} more characters`, () => {
    shown.textContent = text;
    more.remove();
  });
  return h("span", null, shown, more);
}

function rest(number, show) {
  const line = h(
    "li",
    null,
    button(`… ${count(number)} more`, () => {
      line.remove();
      show();
    }),
  );
  return line;
}

function button(label, click) {
  return h("button", { type: "button", class: "quiet small", on: { click } }, label);
}
