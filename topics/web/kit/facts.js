/* Names and values below each other: what is known of one thing. */

import { h } from "./dom.js";

/* `[[name, value], …]`; a value is text or a node, and a pair that is falsy is left out. */
export function facts(pairs) {
  const known = pairs.filter(Boolean);
  return h("dl", { class: "facts" }, known.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))));
}
