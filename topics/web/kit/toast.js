/* A short word at the edge of the page, which goes by itself unless somebody is at it. Kinds: ok, warning, bad. */

import { h } from "./dom.js";
import { iconButton } from "./state.js";

const STAYS_MS = { ok: 5000, warning: 8000, bad: 12_000 };

/* `action` is `{ label, run }`: a button beside the text. */
export function toast(text, { kind = "ok", action = null } = {}) {
  const close = () => element.remove();
  const run = () => {
    close();
    action.run();
  };
  const element = h(
    "div",
    { class: `toast ${kind}`, role: kind === "bad" ? "alert" : "status" },
    h("span", null, text),
    action && h("button", { type: "button", class: "quiet", on: { click: run } }, action.label),
    iconButton("close", "Close", close),
  );
  let timer = 0;
  const leave = () => {
    timer = setTimeout(close, STAYS_MS[kind]);
  };
  const stay = () => clearTimeout(timer);
  for (const kind of ["pointerenter", "focusin"]) element.addEventListener(kind, stay);
  for (const kind of ["pointerleave", "focusout"]) element.addEventListener(kind, leave);
  // Above a dialog that is open, since nothing else can be seen or heard then.
  const place = document.querySelector("dialog[open]:last-of-type") ?? document.body;
  region(place).append(element);
  leave();
  return element;
}

function region(place) {
  const known = place.querySelector(":scope > .toasts");
  if (known) return known;
  const made = h("div", { class: "toasts", role: "region", "aria-label": "Notices" });
  place.append(made);
  return made;
}
