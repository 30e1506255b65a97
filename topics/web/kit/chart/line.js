/* Lines over time. The drawing stays and what is in it moves: nothing is built anew when values come.
 *
 *   series  [{ name, label, values }]: a value for each time, null where there is none, which leaves a gap
 *   times   ms since 1970, from old to new
 *   unit    of the values, as `GET /v0/series` names it: per_s, bytes_per_s, ms, count, bytes, share
 *   label   what the chart is called
 *   height  of the plot, in pixels
 * Gives an element with `update({ series, times })`.
 *
 * A pointer over it, or the arrow keys when it has the focus, read out the values of a moment. The legend's buttons take a
 * series away and bring it back. */

import { h, setText, svg } from "../dom.js";
import { clock, inUnit } from "../format.js";
import { Legend } from "./legend.js";
import { largest, path, ticks, timeTicks } from "./scale.js";

const EDGE = { left: 58, right: 10, top: 8, bottom: 22 };
const PX_PER_TIME_TICK = 90;
const PX_PER_TICK = 45;

export function lineChart(options) {
  const chart = new LineChart(options);
  return Object.assign(chart.element, { update: (changed) => chart.update(changed) });
}

class LineChart {
  constructor({ series, times, unit = "count", label, height = 160 }) {
    this.unit = unit;
    this.label = label;
    this.height = height;
    this.width = 0;
    this.at = null;
    this.legend = new Legend(series, () => this.draw());
    this.build(series);
    this.update({ series, times });
    new ResizeObserver(([entry]) => this.resize(Math.floor(entry.contentRect.width))).observe(this.plot);
  }

  build(series) {
    this.grid = svg("g", { class: "chart-grid" });
    this.cursor = svg("line", { class: "chart-cursor", y1: EDGE.top, y2: this.height - EDGE.bottom });
    const line = (number) => svg("path", { class: `chart-line series-${number}` });
    this.lines = new Map(series.map(({ name }, index) => [name, line(index + 1)]));
    const size = { class: "chart-drawing", height: this.height, "aria-hidden": "true" };
    this.drawing = svg("svg", size, this.grid, this.cursor, ...this.lines.values());
    this.readout = h("div", { class: "chart-readout", "aria-hidden": "true" });
    const about = { "aria-label": `${this.label}, a moment`, "aria-valuemin": 0 };
    this.slider = h("div", { class: "chart-slider", role: "slider", tabindex: "0", ...about });
    this.slider.addEventListener("pointermove", (event) => this.point(event.offsetX));
    this.slider.addEventListener("pointerleave", () => this.readAt(null));
    this.slider.addEventListener("blur", () => this.readAt(null));
    this.slider.addEventListener("focus", () => this.readAt(this.at ?? this.times.length - 1));
    this.slider.addEventListener("keydown", (event) => this.pressed(event));
    this.plot = h("div", { class: "chart-plot" }, this.drawing, this.slider, this.readout);
    this.plot.style.setProperty("height", `${this.height}px`);
    this.summary = h("p", { class: "unseen" });
    const caption = h("figcaption", null, h("span", { class: "chart-label" }, this.label), this.legend.element);
    this.element = h("figure", { class: "chart" }, caption, this.plot, this.summary);
  }

  update({ series, times }) {
    this.series = series;
    this.times = times;
    if (this.at !== null && this.at >= times.length) this.at = null;
    this.slider.setAttribute("aria-valuemax", String(Math.max(0, times.length - 1)));
    this.legend.show(series.map((each) => [each.name, inUnit(lastOf(each.values), this.unit)]));
    setText(this.summary, `${this.label}: ${series.map((each) => this.summed(each)).join("; ")}.`);
    this.draw();
  }

  summed({ label, values }) {
    const known = values.filter((value) => value !== null);
    if (known.length === 0) return `${label} has no values`;
    return `${label} is ${inUnit(known.at(-1), this.unit)}, at most ${inUnit(Math.max(...known), this.unit)}`;
  }

  resize(width) {
    if (width === this.width) return;
    this.width = width;
    this.drawing.setAttribute("width", String(width));
    this.draw();
  }

  // ---- drawing

  draw() {
    if (this.width === 0) return;
    const shown = this.series.filter(({ name }) => this.legend.shows(name));
    const most = largest(shown.map(({ values }) => values)) || 1;
    const marks = ticks(most, (this.height - EDGE.top - EDGE.bottom) / PX_PER_TICK, this.unit);
    this.most = marks.at(-1);
    this.xs = this.times.map((time) => this.x(time));
    this.drawGrid(marks);
    for (const { name, values } of this.series) {
      const ys = this.legend.shows(name) ? values.map((value) => (value === null ? null : this.y(value))) : [];
      this.lines.get(name).setAttribute("d", path(this.xs.slice(0, ys.length), ys));
    }
    this.readAt(this.at);
  }

  x(time) {
    const [from, to] = [this.times[0], this.times.at(-1)];
    const wide = this.width - EDGE.left - EDGE.right;
    return EDGE.left + (to > from ? ((time - from) / (to - from)) * wide : wide);
  }

  y(value) {
    const tall = this.height - EDGE.top - EDGE.bottom;
    return EDGE.top + tall - (value / this.most) * tall;
  }

  drawGrid(marks) {
    const right = this.width - EDGE.right;
    const rows = marks.map((mark) => {
      const y = this.y(mark);
      return svg(
        "g",
        null,
        svg("line", { x1: EDGE.left, x2: right, y1: y, y2: y }),
        svg("text", { x: EDGE.left - 6, y: y + 4, "text-anchor": "end" }, inUnit(mark, this.unit)),
      );
    });
    const wanted = Math.max(2, (right - EDGE.left) / PX_PER_TIME_TICK);
    const moments = this.times.length > 1 ? timeTicks(this.times[0], this.times.at(-1), wanted) : [];
    const columns = moments.map((time) => {
      const x = this.x(time);
      const anchor = x > right - 30 ? "end" : x < EDGE.left + 30 ? "start" : "middle";
      return svg("text", { x, y: this.height - 6, "text-anchor": anchor }, clock(time));
    });
    this.grid.replaceChildren(...rows, ...columns);
    const isEmpty = this.series.every(({ values }) => values.every((value) => value === null));
    if (isEmpty) {
      const middle = { x: (EDGE.left + right) / 2, y: EDGE.top + (this.height - EDGE.top - EDGE.bottom) / 4 + 4, "text-anchor": "middle" };
      this.grid.append(svg("text", middle, "nothing was measured in this time"));
    }
  }

  // ---- reading

  point(x) {
    if (this.times.length === 0) return;
    let best = 0;
    this.xs.forEach((each, index) => {
      if (Math.abs(each - x) < Math.abs(this.xs[best] - x)) best = index;
    });
    this.readAt(best);
  }

  pressed(event) {
    const last = this.times.length - 1;
    const from = this.at ?? last;
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -from, End: last - from };
    const to = from + steps[event.key];
    if (Number.isNaN(to) || last < 0) return;
    event.preventDefault();
    this.readAt(Math.max(0, Math.min(last, to)));
  }

  /* Show the values at one of the times; null shows none. */
  readAt(index) {
    this.at = index;
    const shows = index !== null && index >= 0 && this.xs !== undefined;
    this.plot.toggleAttribute("data-reading", shows);
    if (!shows) {
      this.slider.setAttribute("aria-valuenow", String(Math.max(0, this.times.length - 1)));
      this.slider.setAttribute("aria-valuetext", this.summary.textContent);
      return;
    }
    const x = this.xs[index];
    this.cursor.setAttribute("x1", String(x));
    this.cursor.setAttribute("x2", String(x));
    const time = clock(this.times[index]);
    const shown = this.series.filter(({ name }) => this.legend.shows(name));
    const values = shown.map(({ label, values: all }) => `${label} ${inUnit(all[index], this.unit)}`);
    this.readout.replaceChildren(h("strong", null, time), ...values.map((text) => h("span", null, text)));
    this.readout.classList.toggle("before", x > this.width / 2);
    this.readout.style.setProperty("left", `${x}px`);
    this.slider.setAttribute("aria-valuenow", String(index));
    this.slider.setAttribute("aria-valuetext", `${time}: ${values.join(", ")}`);
  }
}

function lastOf(values) {
  for (let index = values.length - 1; index >= 0; index -= 1) if (values[index] !== null) return values[index];
  return null;
}
