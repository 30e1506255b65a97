/* The series as charts, at one of three steps. What is new is asked for and added at the end; what is too old goes. */

import { api } from "../../kit/api.js";
import { lineChart } from "../../kit/chart.js";
import { h, replace } from "../../kit/dom.js";
import { every } from "../../kit/live.js";
import { loading } from "../../kit/state.js";

const STEPS = [
  { name: "1s", label: "10 min", count: 600, ms: 1000 },
  { name: "10s", label: "2 h", count: 720, ms: 10_000 },
  { name: "1min", label: "1 day", count: 1440, ms: 60_000 },
];
const LOOK_MS = 2000;
const STORED = "topics-overview-step";

const CHARTS = [
  { label: "Requests", unit: "per_s", series: ["writes", "reads", "deliveries", "errors"].map((name) => [name, name]) },
  { label: "Records written", unit: "per_s", series: [["records", "records"]] },
  { label: "Write latency", unit: "ms", series: [["write_p50", "half"], ["write_p99", "99 of 100"]] },
  { label: "Read latency", unit: "ms", series: [["read_p50", "half"], ["read_p99", "99 of 100"]] },
  { label: "Sync latency", unit: "ms", series: [["sync_p50", "half"], ["sync_p99", "99 of 100"]] },
  { label: "Connections", unit: "count", series: [["connections", "connections"], ["streams", "streams"]] },
  { label: "Bytes to the log", unit: "bytes_per_s", series: [["wal_bytes", "bytes"]] },
  { label: "Disk", unit: "bytes", series: [["wal_disk", "log"], ["hot_disk", "hot"], ["cold_disk", "cold"]] },
];
const NAMES = CHARTS.flatMap(({ series }) => series.map(([name]) => name)).join(",");

export class Charts {
  constructor(signal) {
    this.signal = signal;
    this.element = h("div", { class: "charts" }, loading());
    this.step = STEPS.find(({ name }) => name === localStorage.getItem(STORED)) ?? STEPS[0];
    const choose = (step) => () => this.choose(step);
    this.buttons = STEPS.map((step) => h("button", { type: "button", on: { click: choose(step) } }, step.label));
    this.steps = h("div", { class: "steps", role: "group", "aria-label": "How far back" }, this.buttons);
    this.clear();
  }

  begin() {
    this.poll = every(LOOK_MS, this.signal, () => this.look());
    return this.poll;
  }

  choose(step) {
    localStorage.setItem(STORED, step.name);
    this.step = step;
    this.clear();
    this.poll.now();
  }

  clear() {
    this.times = [];
    this.values = {};
    this.buttons.forEach((button, index) => button.setAttribute("aria-pressed", String(STEPS[index] === this.step)));
  }

  async look() {
    const { step } = this;
    const query = { step: step.name, names: NAMES, since: this.times.at(-1) ?? 0 };
    const found = await api.get("/v0/series", { query, signal: this.signal });
    // Another step was chosen meanwhile: what was asked for is not wanted any more.
    if (step !== this.step) return;
    this.add(found);
    this.draw();
  }

  add({ times, series }) {
    const last = (list) => list.slice(-this.step.count);
    this.times = last([...this.times, ...times]);
    for (const [name, { values }] of Object.entries(series)) {
      this.values[name] = last([...(this.values[name] ?? []), ...values]);
    }
  }

  draw() {
    const line = ([name, label]) => ({ name, label, values: this.values[name] });
    const drawn = CHARTS.map(({ series }) => series.map(line));
    if (this.charts === undefined) {
      const { times } = this;
      this.charts = CHARTS.map(({ label, unit }, index) => lineChart({ label, unit, series: drawn[index], times }));
      replace(this.element, this.charts.map((chart) => h("div", { class: "section" }, chart)));
    } else {
      this.charts.forEach((chart, index) => chart.update({ series: drawn[index], times: this.times }));
    }
  }
}
