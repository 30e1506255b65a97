/* What statements answered: a table of rows each, with types, of which only those that can be seen are drawn. */

import { copyButton } from "../../kit/copy.js";
import { dialog } from "../../kit/dialog.js";
import { h, replace } from "../../kit/dom.js";
import { download } from "../../kit/download.js";
import { count, counted } from "../../kit/format.js";
import { jsonView } from "../../kit/json.js";
import { button, section, toolbar } from "../../kit/state.js";
import { virtualList } from "../../kit/virtual.js";
import { asCsv, asJson, asText } from "./export.js";

const ROWS_SHOWN = 1000;
const ROW_PX = 30;
const CELL_CHARS = 200;
const HEIGHT_ROWS = 15;

export function results(answers) {
  return answers.map((answer, at) => result(answer, answers.length === 1 ? "Result" : `Result ${at + 1}`));
}

function result(answer, title) {
  const { columns = [], rows = [], message } = answer;
  return section(
    title,
    message && h("p", { class: "message", role: "status" }, message),
    lossesOf(answer).map((gap) => h("p", { class: "note warning" }, `Records ${count(gap.gap_from)} to ${count(gap.gap_to)} were lost: ${gap.reason}.`)),
    columns.length > 0 && rowTable(title, columns, rows),
  );
}

function lossesOf({ tombstone, tombstones }) {
  return tombstones ?? (tombstone ? [tombstone] : []);
}

function rowTable(title, columns, rows) {
  const name = title.toLowerCase().replaceAll(" ", "-");
  const csv = () => asCsv({ columns, rows });
  const json = () => asJson({ columns, rows });
  const number = h("span", { class: "note" }, counted(rows.length, "row"));
  const tools = toolbar(
    number,
    h("span", null, "CSV", copyButton(csv, `Copy ${title} as CSV`)),
    h("span", null, "JSON", copyButton(json, `Copy ${title} as JSON`)),
    button("Download CSV", () => download(`${name}.csv`, csv(), "text/csv"), { name: "down" }),
    button("Download JSON", () => download(`${name}.json`, json(), "application/json"), { name: "down" }),
  );
  if (rows.length === 0) return [tools, h("p", { class: "none" }, "No rows.")];
  const list = virtualList({
    rowHeight: ROW_PX,
    count: Math.min(rows.length, ROWS_SHOWN),
    label: title,
    class: "sql-rows",
    columns: columns.map((column) => h("span", null, column.name, " ", h("small", null, column.type))),
    row: (index) => rows[index].map((value, at) => cell(columns[at], value)),
  });
  list.style.setProperty("--columns", columns.length);
  list.style.setProperty("--rows", Math.min(rows.length, HEIGHT_ROWS) + 2);
  return [tools, rows.length > ROWS_SHOWN && cutNotice(rows.length, list), list];
}

function cutNotice(total, list) {
  const all = () => {
    list.update({ count: total });
    replace(notice, `All ${count(total)} rows are shown.`);
  };
  const notice = h("p", { class: "note", role: "status" }, `The first ${count(ROWS_SHOWN)} of ${count(total)} rows are shown. Copies and downloads have all of them. `, button("Show all", all, { kind: "quiet" }));
  return notice;
}

function cell(column, value) {
  if (value === null) return h("span", { class: "null" }, "NULL");
  const text = asText(value);
  if (text.length <= CELL_CHARS && typeof value !== "object") return h("span", { class: ["number", "bigint"].includes(typeof value) && "figure" }, text);
  const open = () => dialog({ title: column.name, wide: true, body: jsonView(value), actions: [{ label: "Close" }] });
  return h("button", { type: "button", class: "quiet mono", tabindex: "-1", on: { click: open } }, text.slice(0, CELL_CHARS));
}
