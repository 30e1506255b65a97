/* All pipelines with how they are and how far behind, and the tables they know. */

import { at } from "../kit/api.js";
import { h, setText } from "../kit/dom.js";
import { empty } from "../kit/empty.js";
import { ago } from "../kit/format.js";
import { every } from "../kit/live.js";
import { allPages } from "../kit/pages.js";
import { badge, button, heading, tabs } from "../kit/state.js";
import { table } from "../kit/table.js";
import { toast } from "../kit/toast.js";
import { conditionBadge, lagText, rateText, targetOf } from "./pipeline/condition.js";
import { declarePipeline } from "./pipeline/declaring.js";
import { tableTable } from "./pipeline/tables.js";

const REFRESH_MS = 3000;

export default {
  title: () => "Pipelines",
  style: ["work", "pipelines"],

  async mount(root, { go, query, signal, me }) {
    const list = pipelineTable();
    const tables = tableTable(me, () => poll.now());
    const cut = h("p", { class: "note", role: "status" });
    const declare = async () => {
      const made = await declarePipeline();
      if (made === null) return;
      toast(`Pipeline ${made.pipeline} is declared.`);
      go(at`/pipelines/${made.pipeline}`);
    };
    root.append(
      heading("Pipelines", {
        about: "What is made of tables and topics. Declared here, done by a runner on Spark, which says how far it is.",
        actions: me.may("admin") ? [button("New pipeline", declare, { kind: "primary", name: "plus" })] : [],
      }),
      cut,
      tabs(
        [
          { name: "pipelines", label: "Pipelines", content: list },
          { name: "tables", label: "Tables", content: tables },
        ],
        { label: "Pipelines and tables", open: query.get("tab") ?? "pipelines" },
      ),
    );
    const poll = every(REFRESH_MS, signal, async () => {
      const [pipelines, known] = await Promise.all([
        allPages("/v0/pipelines", { name: "pipelines", signal }),
        allPages("/v0/tables", { name: "tables", query: { full: true }, signal }),
      ]);
      list.update(pipelines.items);
      tables.update(known.items);
      setText(cut, pipelines.isCut || known.isCut ? "There are more than can be shown here: ask system.pipelines and system.tables." : "");
    });
    await poll;
  },
};

function pipelineTable() {
  return table({
    label: "Pipelines",
    key: (row) => row.pipeline,
    sort: { name: "pipeline", descending: false },
    empty: empty({
      name: "pipelines",
      title: "No pipelines yet",
      text: "Declare one, and start a runner where Spark is:",
      commands: [
        "topics sql \"CREATE PIPELINE latest AS MERGE INTO delta.'/data/orders' KEY (id) FROM STREAM orders SCHEMA 'id bigint, sku string'\"",
        "topics pipeline run",
      ],
    }),
    columns: [
      { name: "pipeline", label: "Pipeline", value: (row) => row.pipeline, cell: (row) => h("a", { href: at`/pipelines/${row.pipeline}` }, row.pipeline) },
      { name: "kind", label: "Kind", value: (row) => row.kind, cell: (row) => badge(row.kind) },
      { name: "condition", label: "Condition", value: (row) => row.condition, cell: (row) => conditionBadge(row.condition) },
      { name: "target", label: "Into", value: targetOf },
      { name: "position", label: "Position", value: (row) => row.report?.position, cell: (row) => row.report?.position || "–" },
      { name: "lag", label: "Behind", value: (row) => row.report?.lag_records ?? row.report?.lag_versions, cell: (row) => lagText(row.report) },
      { name: "rates", label: "Rates", value: (row) => row.report?.input_rows_per_second, cell: (row) => rateText(row.report) },
      { name: "error", label: "Last error", class: "payload", value: (row) => row.report?.last_error, cell: (row) => row.report?.last_error || "–" },
      { name: "reported", label: "Reported", value: (row) => row.reported_ts, cell: (row) => ago(row.reported_ts) },
    ],
  });
}
