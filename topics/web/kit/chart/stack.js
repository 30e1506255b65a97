/* One bar that is divided: what a whole is made of. */

import { h } from "../dom.js";
import { bytes, percent } from "../format.js";

/* `parts` are `{ name, label, value }`; `name` gives the colour: `.stack-part.<name>`. Gives an element with `update(parts)`. */
export function stack({ parts, label, format = bytes }) {
  const bar = h("div", { class: "stack-bar", "aria-hidden": "true" });
  const list = h("dl", { class: "stack-list", "aria-label": label });
  const element = h("figure", { class: "stack" }, bar, list);

  function update(next) {
    const total = next.reduce((sum, part) => sum + part.value, 0);
    bar.replaceChildren(
      ...next.map((part) => {
        const piece = h("div", { class: `stack-part ${part.name}`, title: `${part.label}: ${format(part.value)}` });
        // What is there can be seen, however small it is beside the rest.
        piece.style.setProperty("min-width", part.value > 0 ? "3px" : "0");
        piece.style.setProperty("flex-grow", String(total ? part.value / total : 0));
        return piece;
      }),
    );
    list.replaceChildren(
      ...next.map((part) =>
        h(
          "div",
          { class: "stack-line" },
          h("dt", null, h("span", { class: `stack-key ${part.name}`, "aria-hidden": "true" }), part.label),
          h("dd", null, format(part.value), h("small", null, total ? percent(part.value / total) : "")),
        ),
      ),
    );
  }

  update(parts);
  return Object.assign(element, { update });
}
