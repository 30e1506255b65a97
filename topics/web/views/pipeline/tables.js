/* Registered tables, and the routes from each. */

import { api, at } from "../../kit/api.js";
import { confirm, dialog } from "../../kit/dialog.js";
import { h } from "../../kit/dom.js";
import { empty } from "../../kit/empty.js";
import { facts } from "../../kit/facts.js";
import { count, when } from "../../kit/format.js";
import { badge, button } from "../../kit/state.js";
import { table } from "../../kit/table.js";
import { toast } from "../../kit/toast.js";

export function tableTable(me, changed) {
  const open = (row) => h("button", { type: "button", class: "quiet", on: { click: () => showTable(row, me, changed) } }, row.table);
  return table({
    label: "Tables",
    key: (row) => row.table,
    sort: { name: "table", descending: false },
    empty: empty({
      name: "pipelines",
      title: "No tables are registered",
      text: "A registered table has a name that routes and pipelines know it by:",
      commands: ["topics sql \"REGISTER TABLE chat.messages USING delta LOCATION '/data/messages' KEY (id)\""],
    }),
    columns: [
      { name: "table", label: "Table", value: (row) => row.table, cell: open },
      { name: "format", label: "Format", value: (row) => row.format, cell: (row) => badge(row.format) },
      { name: "location", label: "Where", value: locationOf },
      { name: "key", label: "Key", value: (row) => row.key.join(", "), cell: (row) => row.key.join(", ") || "–" },
      { name: "routes", label: "Routes", align: "end", value: (row) => row.routes.length, cell: routesCell },
    ],
  });
}

/* The routes of a table, as they are declared. */
export function routeTable() {
  return table({
    label: "Routes",
    key: (row) => `${row.topic}/${row.operation}/${row.number}`,
    empty: h("p", { class: "none" }, "Nothing leads from this table into a topic."),
    columns: [
      { name: "topic", label: "Into", value: (row) => row.topic, cell: (row) => h("a", { href: at`/topics/${row.topic}` }, row.topic) },
      { name: "operation", label: "On", value: (row) => row.operation, cell: (row) => badge(row.operation) },
      { name: "payload", label: "Payload", value: (row) => row.payload },
      { name: "where", label: "Where", value: (row) => row.where, cell: (row) => (row.where ? h("code", null, row.where) : "–") },
      { name: "by", label: "Partition by", value: (row) => row.partition_by, cell: (row) => (row.partition_by ? h("code", null, row.partition_by) : "–") },
      { name: "start", label: "From", value: (row) => row.start, cell: (row) => (row.start === "version" ? `version ${row.start_version}` : row.start) },
    ],
  });
}

function locationOf(row) {
  return row.location || (row.location_env ? `$${row.location_env} of the runner` : "–");
}

function routesCell(row) {
  return row.routes.length > 0 ? h("a", { href: at`/pipelines/${`routes:${row.table}`}` }, count(row.routes.length)) : "0";
}

function showTable(row, me, changed) {
  const routes = routeTable();
  routes.update(row.routes);
  return dialog({
    title: row.table,
    wide: true,
    body: (close) => {
      const remove = async () => {
        if (!(await unregister(row.table))) return;
        close();
        toast(`${row.table} is not registered any more.`);
        changed();
      };
      return h(
        "div",
        null,
        facts([
          ["Format", row.format],
          ["Where", locationOf(row)],
          ["Called there", row.source || row.table],
          ["Key", row.key.join(", ") || "none"],
          ["Columns", row.columns.map((column) => `${column.name} ${column.type}`).join(", ") || "not known"],
          ["Registered", when(row.created_ts)],
          ["Changed", when(row.changed_ts)],
        ]),
        h("h3", null, "Routes"),
        routes,
        me.may("admin") && h("div", { class: "dialog-actions" }, button("Unregister", remove, { kind: "danger", name: "delete" })),
      );
    },
  });
}

/* Whether it was. */
async function unregister(name) {
  const sure = await confirm({
    title: `Unregister ${name}?`,
    body: "The name is forgotten; the table itself is not touched. It is refused while a route or a pipeline reads it.",
    word: name,
    action: "Unregister",
    danger: true,
  });
  if (!sure) return false;
  try {
    await api.remove(at`/v0/tables/${name}`);
  } catch (error) {
    toast(error.message, { kind: "bad" });
    return false;
  }
  return true;
}
