/* How the priorities of what waits are spread, drawn, and what the K bound of a heap means for who takes from it. */

import { bars } from "../../kit/chart.js";
import { h, replace, setText } from "../../kit/dom.js";
import { count, counted } from "../../kit/format.js";
import { section } from "../../kit/state.js";

export const BUCKETS = 32;

/* Gives an element with `update(priorities, heap)`, of what the server says of both. */
export function spread() {
  const chart = bars({ values: [], labels: [], label: "Ready messages by priority", height: 140 });
  const note = h("p", { class: "note" });
  const bound = h("p", { class: "note" });
  const place = h("div");
  const element = section("Priorities", place, note, bound);

  function update(told, heap) {
    const { buckets } = told;
    if (buckets.length === 0) {
      replace(place, h("p", { class: "none" }, "Nothing is ready."));
    } else {
      chart.update({ values: buckets.map((each) => each.count), labels: buckets.map(priorityRange) });
      if (chart.parentNode !== place) replace(place, chart);
    }
    setText(note, noteOf(told));
    setText(bound, boundOf(heap));
  }

  return Object.assign(element, { update });
}

export function priorityRange({ priority_min: least, priority_max: most }) {
  return least === most ? String(least) : `${least} … ${most}`;
}

function noteOf(told) {
  const order = told.mode === "MIN" ? "The lowest priority is taken first" : "The highest priority is taken first";
  const inexact = told.exact ? "" : " Messages that were cancelled or reprioritised a moment ago may still be drawn.";
  return `${counted(told.ready_messages, "message")} ready, the best at the left. ${order}.${inexact}`;
}

function boundOf(heap) {
  const bound = count(heap.top_k_bound);
  const where = heap.partitions > 1 ? ` over all ${count(heap.partitions)} partitions` : "";
  return `K bound ${bound}: a pop gives one of the best ${bound}${where}. On one machine every pop gives the best message there is.`;
}
