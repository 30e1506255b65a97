/* A line the size of a word. */

import { svg } from "../dom.js";
import { largest, path } from "./scale.js";

const WIDTH = 96;
const HEIGHT = 24;
const EDGE = 2;
const SIZE = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, preserveAspectRatio: "none" };

/* `values` from old to new, null where there is none. Gives an element with `update(values)`. */
export function sparkline(values, label) {
  const line = svg("path", { class: "spark-line" });
  const area = svg("path", { class: "spark-area" });
  const element = svg(
    "svg",
    { class: "spark", role: "img", "aria-label": label, ...SIZE },
    area,
    line,
  );

  function update(next) {
    const most = largest([next]) || 1;
    const step = next.length > 1 ? (WIDTH - 2 * EDGE) / (next.length - 1) : 0;
    const xs = next.map((_, index) => EDGE + index * step);
    const ys = next.map((value) => (value === null ? null : HEIGHT - EDGE - (value / most) * (HEIGHT - 2 * EDGE)));
    line.setAttribute("d", path(xs, ys));
    const whole = xs.length > 1 && ys.every((y) => y !== null);
    const floor = HEIGHT - EDGE;
    area.setAttribute("d", whole ? `${path(xs, ys)}L${xs.at(-1).toFixed(1)} ${floor}L${xs[0].toFixed(1)} ${floor}Z` : "");
  }

  update(values);
  return Object.assign(element, { update });
}
