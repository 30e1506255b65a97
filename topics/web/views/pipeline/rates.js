/* Rows in and out over time, since somebody looked: kept while the page is open. */

import { lineChart } from "../../kit/chart.js";
import { section } from "../../kit/state.js";

const POINTS_MAX = 900;
const PIPELINES_MAX = 20;
const kept = new Map();

/* Gives an element with `update(report)`. */
export function rateChart(name) {
  const points = pointsOf(name);
  const chart = lineChart({ series: seriesOf(points), times: points.times, unit: "per_s", label: "Rows a second", height: 140 });

  function update(report) {
    points.times.push(Date.now());
    points.input.push(report?.input_rows_per_second ?? null);
    points.output.push(report?.output_rows_per_second ?? null);
    for (const column of Object.values(points)) if (column.length > POINTS_MAX) column.shift();
    chart.update({ series: seriesOf(points), times: points.times });
  }

  return Object.assign(section("Rates", chart), { update });
}

function pointsOf(name) {
  const points = kept.get(name) ?? { times: [], input: [], output: [] };
  kept.delete(name);
  kept.set(name, points);
  if (kept.size > PIPELINES_MAX) kept.delete(kept.keys().next().value);
  return points;
}

function seriesOf({ input, output }) {
  return [
    { name: "input", label: "In", values: input },
    { name: "output", label: "Out", values: output },
  ];
}
