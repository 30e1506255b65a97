/* The last sample as figures. */

import { count, inUnit, percent, rate } from "../../kit/format.js";
import { stat, stats } from "../../kit/state.js";

const SHOWN = [
  ["writes", "Writes", (now) => rate(now.writes), (now) => `${rate(now.records)} records`],
  ["reads", "Reads", (now) => rate(now.reads), (now) => within(now.read_p50)],
  ["deliveries", "Deliveries", (now) => rate(now.deliveries), () => "jobs, messages, groups"],
  ["write_p99", "Write latency, 99 of 100", (now) => inUnit(now.write_p99, "ms"), (now) => within(now.write_p50)],
  ["sync_p99", "Sync latency, 99 of 100", (now) => inUnit(now.sync_p99, "ms"), (now) => `${rate(now.syncs)} syncs`],
  ["connections", "Connections", (now) => count(now.connections), (now) => `${count(now.streams)} streams`],
  ["records_live", "Records", (now) => count(now.records_live), (now) => inUnit(now.bytes_live, "bytes")],
  ["errors", "Errors", (now) => rate(now.errors), (now) => `${percent(now.admitted)} of writes admitted`],
];

function within(ms) {
  return ms === undefined ? "none lately" : `half within ${inUnit(ms, "ms")}`;
}

/* Gives an element with `update(now)`. */
export function figures() {
  const made = SHOWN.map(([, label]) => stat(label, "–"));
  const element = stats(made);
  const update = (now) => SHOWN.forEach(([, , value, hint], index) => made[index].update(value(now), hint(now)));
  return Object.assign(element, { update });
}
