/* What dead letters are chosen by, as fields in a row. */

import { h, uniqueId } from "../../kit/dom.js";

/* Gives an element with `values()`. `changed` is called when another choice is made. */
export function filterBar(filters, changed) {
  const inputs = filters.map((filter) => {
    const input = h("input", { id: uniqueId("filter"), name: filter.name, type: filter.type ?? "text", placeholder: filter.hint, autocomplete: "off" });
    return { input, element: h("div", { class: "field" }, h("label", { for: input.id }, filter.label), input) };
  });
  const send = (event) => {
    event.preventDefault();
    changed();
  };
  const clear = () => {
    for (const { input } of inputs) input.value = "";
    changed();
  };
  const element = h(
    "form",
    { class: "filters", "aria-label": "Filter", on: { submit: send } },
    inputs.map(({ element: line }) => line),
    h("button", { type: "submit" }, "Filter"),
    h("button", { type: "button", class: "quiet", on: { click: clear } }, "Clear"),
  );
  const values = () => Object.fromEntries(inputs.map(({ input }) => [input.name, input.value.trim()]));
  return Object.assign(element, { values });
}
