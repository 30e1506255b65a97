/* How far a group has lagged behind, partition by partition, since somebody looked: kept while the page is open, also when
 * its view is left and opened again. */

import { lineChart } from "../../kit/chart.js";
import { section } from "../../kit/state.js";

const POINTS_MAX = 900;
const LINES_MAX = 8;
const GROUPS_MAX = 20;

/* By topic and group: times, and by partition the lag at each. */
const kept = new Map();

/* Gives an element with `update(states)`, of the group in its partitions. Partitions with the largest lag have a line. */
export function lagChart(topic, group) {
  const history = historyOf(`${topic}\n${group}`);
  let chart = null;
  let drawn = "";
  const element = section("Lag over time");

  function update(states) {
    note(history, states);
    const shown = [...states].sort((one, other) => other.lag - one.lag).slice(0, LINES_MAX).map(partitionOf);
    shown.sort((one, other) => one - other);
    const series = shown.map((partition) => ({
      name: String(partition),
      label: states.length === 1 ? "Lag" : `Partition ${partition}`,
      values: history.times.map((_, index) => history.lags.get(partition)?.[index] ?? null),
    }));
    if (drawn !== shown.join()) {
      drawn = shown.join();
      const next = lineChart({ series, times: history.times, unit: "count", label: "Records not acked yet", height: 180 });
      if (chart) chart.replaceWith(next);
      else element.append(next);
      chart = next;
    } else {
      chart.update({ series, times: history.times });
    }
  }

  return Object.assign(element, { update });
}

export function partitionOf(state) {
  return state.partition ?? 0;
}

function historyOf(name) {
  const known = kept.get(name) ?? { times: [], lags: new Map() };
  // The one that was looked at last is the last to go.
  kept.delete(name);
  kept.set(name, known);
  if (kept.size > GROUPS_MAX) kept.delete(kept.keys().next().value);
  return known;
}

function note(history, states) {
  const { times, lags } = history;
  for (const state of states) {
    const partition = partitionOf(state);
    if (!lags.has(partition)) lags.set(partition, Array(times.length).fill(null));
    lags.get(partition).push(state.lag);
  }
  times.push(Date.now());
  for (const values of lags.values()) {
    if (values.length < times.length) values.push(null);
    if (values.length > POINTS_MAX) values.shift();
  }
  if (times.length > POINTS_MAX) times.shift();
}
