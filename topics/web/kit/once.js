/* A secret that is shown once: to be selected or copied now, and never to be had again. It is in the page only while the
 * dialog is open. */

import { copyButton } from "./copy.js";
import { dialog } from "./dialog.js";
import { h, uniqueId } from "./dom.js";

/* `label` names the secret, `about` says what to do with it, `notes` are lines below. */
export function showOnce({ title, label, secret, about, notes = [] }) {
  const id = uniqueId("secret");
  const field = h("input", {
    id,
    class: "secret",
    type: "text",
    readonly: true,
    value: secret,
    autocomplete: "off",
    spellcheck: "false",
    autofocus: true,
    on: { focus: () => field.select() },
  });
  const body = h(
    "div",
    { class: "once" },
    h("p", null, about),
    h("label", { for: id }, label),
    h("div", { class: "once-line" }, field, copyButton(secret, `Copy the ${label.toLowerCase()}`)),
    notes.map((note) => h("p", { class: "once-note" }, note)),
  );
  return dialog({ title, body, wide: true, actions: [{ label: "I have kept it", kind: "primary" }] });
}
