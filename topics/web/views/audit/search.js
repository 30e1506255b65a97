/* What is looked for in the audit log: the fields, and their values in the address of the page. */

import { h, uniqueId } from "../../kit/dom.js";
import { button, toolbar } from "../../kit/state.js";

const FIELDS = [
  { name: "text", label: "Anywhere", placeholder: "orders" },
  { name: "action", label: "Action", placeholder: "DELETE" },
  { name: "name", label: "To", placeholder: "a whole name" },
  { name: "who", label: "Who", placeholder: "e-mail or key" },
  { name: "outcome", label: "Outcome", placeholder: "begun, forbidden" },
  { name: "from_ts", label: "Not before", type: "datetime-local" },
  { name: "to_ts", label: "Before", type: "datetime-local" },
];

/* Out of the address of the page; what is not known there is left out. */
export function wantedOf(query) {
  const given = FIELDS.map(({ name, type }) => [name, type ? timeText(query.get(name)) : query.get(name)]);
  return Object.fromEntries(given.filter(([, value]) => value));
}

export function isSearch(wanted) {
  return Object.keys(wanted).length > 0;
}

/* A form that calls `search(values)`. */
export function searchForm(wanted, search) {
  const inputs = FIELDS.map(({ name, type = "search", placeholder }) => {
    const step = type === "search" ? null : "1";
    return h("input", { id: uniqueId("find"), name, type, step, placeholder, autocomplete: "off", value: shown(wanted[name], type) });
  });
  const values = () => Object.fromEntries(FIELDS.map((field, index) => [field.name, read(inputs[index], field.type)]));
  const send = (event) => {
    event.preventDefault();
    search(values());
  };
  return h(
    "form",
    { class: "find", role: "search", "aria-label": "Search the audit log", on: { submit: send } },
    FIELDS.map(({ label }, index) => h("div", { class: "field" }, h("label", { for: inputs[index].id }, label), inputs[index])),
    toolbar(h("button", { type: "submit", class: "primary" }, "Search"), isSearch(wanted) && button("Clear", () => search({}))),
  );
}

function read(input, type) {
  if (type !== "datetime-local") return input.value.trim();
  const ts = input.value ? new Date(input.value).getTime() : NaN;
  return Number.isNaN(ts) ? "" : String(ts);
}

/* A time in the address is milliseconds since 1970; anything else is nothing. */
function timeText(text) {
  return text !== null && /^\d{1,15}$/.test(text) ? text : "";
}

function shown(value, type) {
  if (!value || type !== "datetime-local") return value ?? "";
  const ts = Number(value);
  // Such a field shows the time of whoever looks, without saying so.
  return new Date(ts - new Date(ts).getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}
