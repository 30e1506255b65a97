/* A group looked at closely: its partitions, its members, the ranges that are out, and what it lost. */

import { h } from "../../kit/dom.js";
import { ago, count, when } from "../../kit/format.js";
import { badge } from "../../kit/state.js";
import { table } from "../../kit/table.js";
import { partitionOf } from "./lag.js";

const KIND_BADGES = { claimed: "info", free: "warning", delayed: "warning", acked: "ok", leaving: "bad" };

const partition = { name: "partition", label: "Partition", align: "end", value: partitionOf };

function figure(name, label) {
  return { name, label, align: "end", value: (row) => row[name], cell: (row) => count(row[name]) };
}

function timeColumn(name, label) {
  return { name, label, value: (row) => row[name], cell: (row) => (row[name] ? h("time", { title: when(row[name]) }, ago(row[name])) : "–") };
}

export function partitionTable() {
  return table({
    label: "Partitions",
    key: partitionOf,
    sort: { name: "partition", descending: false },
    columns: [
      partition,
      figure("lag", "Lag"),
      figure("committed_seq", "Committed"),
      figure("head_seq", "Head"),
      figure("in_flight", "In flight"),
      figure("waiting", "To come again"),
      figure("acked_ahead", "Acked ahead"),
      { name: "oldest_seq", label: "Oldest unacked", align: "end", value: (row) => row.oldest_unacked_seq, cell: (row) => count(row.oldest_unacked_seq) },
      timeColumn("oldest_unacked_ts", "Written"),
      timeColumn("updated_ms", "Last ack"),
      figure("dead_lettered", "Dead"),
      figure("lost_count", "Lost"),
      { name: "trouble", label: "Trouble", value: (row) => row.dead_letter_error, cell: (row) => row.dead_letter_error ?? "–" },
    ],
  });
}

export function memberTable() {
  return table({
    label: "Members",
    key: (row) => `${row.partition}/${row.consumer}`,
    empty: h("p", { class: "none" }, "Nobody has records of this group now."),
    columns: [
      { name: "consumer", label: "Consumer", value: (row) => row.consumer, cell: (row) => row.consumer || "without a name" },
      partition,
      figure("claims", "Claims"),
      figure("seqs", "Records"),
      timeColumn("deadline", "First claim ends"),
    ],
  });
}

export function rangeTable() {
  return table({
    label: "Ranges",
    key: (row) => `${row.partition}/${row.first_seq}`,
    empty: h("p", { class: "none" }, "Nothing is out, and nothing waits to be handed out again."),
    columns: [
      partition,
      figure("first_seq", "From seq"),
      figure("last_seq", "To seq"),
      { name: "kind", label: "State", value: (row) => row.kind, cell: (row) => badge(row.kind, KIND_BADGES[row.kind]) },
      { name: "consumer", label: "Held by", value: (row) => row.consumer, cell: (row) => row.consumer || "–" },
      figure("deliveries", "Deliveries"),
      timeColumn("deadline", "Until"),
    ],
  });
}

export function lossTable() {
  return table({
    label: "Losses",
    key: (row) => `${row.partition}/${row.gap_from}`,
    empty: h("p", { class: "none" }, "Nothing was lost before it was acked."),
    columns: [
      partition,
      figure("gap_from", "From seq"),
      figure("gap_to", "To seq"),
      { name: "reason", label: "Why", value: (row) => row.reason },
    ],
  });
}

/* The rows of such a table: what each partition lists under `name`, with the partition. */
export function rowsOf(states, name) {
  return states.flatMap((state) => state[name].map((each) => ({ ...each, partition: partitionOf(state) })));
}
