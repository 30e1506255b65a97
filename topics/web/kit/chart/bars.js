/* Bars beside each other, one a value, with their figures in a table for whoever cannot see them. */

import { h, svg } from "../dom.js";
import { count } from "../format.js";
import { largest } from "./scale.js";

const WIDTH = 600;
const GAP_SHARE = 0.15;

/* `format` says how a value is written. Gives an element with `update({ values, labels })`. */
export function bars({ values, labels, label, height = 120, format = count }) {
  const size = { viewBox: `0 0 ${WIDTH} ${height}`, height, preserveAspectRatio: "none" };
  const drawing = svg("svg", { class: "bars-drawing", "aria-hidden": "true", ...size });
  const ends = h("div", { class: "bars-ends", "aria-hidden": "true" });
  const rows = h("tbody");
  const text = h("table", { class: "unseen" }, h("caption", null, label), rows);
  const element = h("figure", { class: "bars" }, drawing, ends, text);

  function update(next) {
    const most = largest([next.values]) || 1;
    const width = WIDTH / Math.max(1, next.values.length);
    drawing.replaceChildren(
      ...next.values.map((value, at) => {
        // What is there can be seen, however small it is beside the largest.
        const tall = value > 0 ? Math.max(2, (value / most) * height) : 0;
        const x = at * width + (width * GAP_SHARE) / 2;
        const bar = svg("rect", { class: "bars-bar", x, y: height - tall, width: width * (1 - GAP_SHARE), height: tall });
        bar.append(svg("title", null, `${next.labels[at]}: ${format(value)}`));
        return bar;
      }),
    );
    ends.replaceChildren(h("span", null, next.labels[0] ?? ""), h("span", null, next.labels.at(-1) ?? ""));
    rows.replaceChildren(
      ...next.values.map((value, at) => h("tr", null, h("th", { scope: "row" }, next.labels[at]), h("td", null, format(value)))),
    );
  }

  update({ values, labels });
  return Object.assign(element, { update });
}
