/* The routes of a table as their runner says they are: how far each has come. */

import { at } from "../../kit/api.js";
import { h } from "../../kit/dom.js";
import { count } from "../../kit/format.js";
import { badge } from "../../kit/state.js";
import { table } from "../../kit/table.js";
import { lagText } from "./condition.js";

export function progressTable() {
  return table({
    label: "Progress of routes",
    key: (row) => `${row.topic}/${row.operation}/${row.number}`,
    empty: h("p", { class: "none" }, "No runner has said anything of its routes yet."),
    columns: [
      { name: "topic", label: "Into", value: (row) => row.topic, cell: (row) => h("a", { href: at`/topics/${row.topic}` }, row.topic) },
      { name: "operation", label: "On", value: (row) => row.operation, cell: (row) => badge(row.operation) },
      { name: "position", label: "Position", value: (row) => row.position, cell: (row) => row.position || "–" },
      { name: "lag", label: "Behind", value: (row) => row.lag_records ?? row.lag_versions, cell: lagText },
      { name: "records", label: "Records", align: "end", value: (row) => row.records_total, cell: (row) => count(row.records_total) },
      { name: "errors", label: "Errors", align: "end", value: (row) => row.errors_total, cell: (row) => count(row.errors_total) },
    ],
  });
}
