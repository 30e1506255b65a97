/* How a pipeline is, in a word and in figures. */

import { h } from "../../kit/dom.js";
import { counted, duration, rate } from "../../kit/format.js";
import { badge } from "../../kit/state.js";

const KINDS = {
  waiting: "warning",
  starting: "info",
  running: "ok",
  retrying: "warning",
  paused: "quiet",
  stopped: "quiet",
  done: "ok",
  failed: "bad",
  lost: "bad",
};
const MEANINGS = {
  waiting: "No runner has ever taken it. Is one running?",
  starting: "A runner has taken it and begins.",
  running: "A runner works on it.",
  retrying: "It failed, and begins again after a while.",
  paused: "Somebody paused it.",
  stopped: "Its runner has ended.",
  done: "It came to the end of what there was.",
  failed: "It failed in a way that trying again does not help.",
  lost: "Its runner has said nothing for a while.",
};

export function conditionBadge(condition) {
  return badge(condition, KINDS[condition] ?? "quiet");
}

export function meaning(condition) {
  return MEANINGS[condition] ?? "";
}

/* How far it is behind, in what is known of it. */
export function lagText(report) {
  return lagParts(report).join(", ") || "–";
}

/* The same in parts, the most telling one first. */
export function lagParts(report) {
  const parts = [];
  if (!report) return parts;
  if (report.lag_records !== null && report.lag_records !== undefined) parts.push(counted(report.lag_records, "record"));
  if (report.lag_versions !== null && report.lag_versions !== undefined) parts.push(counted(report.lag_versions, "version"));
  if (report.lag_ms) parts.push(duration(report.lag_ms));
  return parts;
}

export function rateText(report) {
  return report ? `${rate(report.input_rows_per_second)} in, ${rate(report.output_rows_per_second)} out` : "–";
}

/* Where it writes to. */
export function targetOf(pipeline) {
  return pipeline.config ? pipeline.config.topic || pipeline.config.path || "–" : "topics of its routes";
}

/* The address of Spark's own page, if it is one that a browser may follow. */
export function sparkLink(report) {
  const address = report?.spark_ui;
  if (!address) return "–";
  if (!/^https?:\/\//i.test(address)) return address;
  return h("a", { href: address, target: "_blank", rel: "noreferrer noopener" }, address);
}
