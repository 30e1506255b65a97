/* What a statement failed with: the server's words, and the line with a caret below the place. */

import { h } from "../../kit/dom.js";
import { button } from "../../kit/state.js";

/* `place` is the line and the column in the text of the editor, if the server named one; `show` leads there. */
export function problem(error, text, place, show) {
  const [said] = error.message.split("\n");
  const line = place && text.split("\n")[place.line - 1];
  const caret = place && `${line}\n${" ".repeat(place.column - 1)}^`;
  const which = error.detail?.statement > 1 && `Statement ${error.detail.statement}: those before it are done.`;
  const expected = (error.detail?.expected ?? []).length > 0 && Array.isArray(error.detail.expected) && h("p", null, "Expected ", error.detail.expected.join(", "), ".");
  return h(
    "div",
    { class: "failed", role: "alert" },
    h(
      "div",
      null,
      h("h2", null, place ? `Line ${place.line}, column ${place.column}` : "That did not work"),
      h("p", { class: "failed-text" }, place ? said : error.message),
      caret && h("pre", { class: "caret", tabindex: "0" }, caret),
      expected,
      which && h("p", null, which),
      place && button("Go there", show),
    ),
  );
}
