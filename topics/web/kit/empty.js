/* An empty place that says what to do next: `commands` are lines for a terminal, each with a button to copy it. */

import { copyButton } from "./copy.js";
import { h } from "./dom.js";
import { icon } from "./icons.js";

export function empty({ title, text = "", commands = [], name = "empty", actions = [] }) {
  const lines = commands.map((command) =>
    h("div", { class: "command" }, h("code", { tabindex: "0" }, command), copyButton(command, "Copy the command")),
  );
  return h(
    "div",
    { class: "empty" },
    icon(name),
    h("h2", null, title),
    text && h("p", null, text),
    lines,
    actions.length > 0 && h("div", { class: "empty-actions" }, actions),
  );
}
