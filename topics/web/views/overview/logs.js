/* The health of each write-ahead log. */

import { bytes, count } from "../../kit/format.js";
import { badge } from "../../kit/state.js";
import { table } from "../../kit/table.js";

const COLUMNS = [
  { name: "shard", label: "Log", value: (log) => log.shard },
  { name: "health", label: "Health", value: (log) => log.healthy, cell: health },
  { name: "depth", label: "Waiting", align: "end", value: (log) => log.queue_depth, cell: (log) => count(log.queue_depth) },
  { name: "bytes", label: "Bytes", align: "end", value: (log) => log.queue_bytes, cell: (log) => bytes(log.queue_bytes) },
];

/* Gives an element with `update(logs)`. */
export function logTable() {
  return table({ label: "Write-ahead logs", key: (log) => log.shard, columns: COLUMNS });
}

function health({ healthy, error }) {
  return healthy ? badge("healthy", "ok") : badge(`stopped: ${error}`, "bad");
}
