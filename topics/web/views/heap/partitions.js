/* The partitions of a heap: what each holds, what is next in it, and how old it has become. */

import { h } from "../../kit/dom.js";
import { ago, count, when } from "../../kit/format.js";
import { badge, section } from "../../kit/state.js";
import { table } from "../../kit/table.js";

/* Gives an element with `update(heap, priorities)`, of what the server says of both. */
export function partitions() {
  const figure = (name, label) => ({ name, label, align: "end", value: (row) => row[name], cell: (row) => count(row[name]) });
  const list = table({
    label: "Partitions",
    key: (row) => row.partition_id,
    sort: { name: "partition_id", descending: false },
    columns: [
      { name: "partition_id", label: "Partition", align: "end", value: (row) => row.partition_id },
      { name: "healthy", label: "State", value: (row) => row.is_healthy, cell: (row) => (row.is_healthy ? badge("ok", "ok") : badge("stopped", "bad")) },
      figure("ready", "Ready"),
      figure("inflight", "Leased"),
      figure("delayed", "Delayed"),
      figure("dead_lettered", "Died ever"),
      { name: "best", label: "Next priority", align: "end", value: (row) => row.best_priority, cell: (row) => String(row.best_priority ?? "–") },
      { name: "oldest", label: "Oldest", value: (row) => row.oldest_ts, cell: oldestCell },
    ],
  });
  const element = section("Partitions", list);

  function update(heap, told) {
    const heads = new Map(told.partitions.map((head) => [head.partition_id, head]));
    const known = Object.values(heap.stats?.partition_stats ?? {});
    list.update(known.map((each) => rowOf(each, heads.get(each.partition_id))));
  }

  return Object.assign(element, { update });
}

function rowOf(numbers, head) {
  const oldest = head?.oldest_time ? Date.parse(head.oldest_time) : null;
  return { ...numbers, best_priority: head?.best_priority ?? null, dead_lettered: head?.dead_lettered, oldest_ts: oldest };
}

function oldestCell(row) {
  return row.oldest_ts === null ? "–" : h("time", { title: when(row.oldest_ts) }, ago(row.oldest_ts));
}
