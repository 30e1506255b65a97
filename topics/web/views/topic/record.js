/* A record, and a gap where records are missing, as lines of a list. A record is opened to see all of it. */

import { h } from "../../kit/dom.js";
import { count, when } from "../../kit/format.js";
import { icon } from "../../kit/icons.js";
import { jsonView } from "../../kit/json.js";
import { badge } from "../../kit/state.js";

const PREVIEW_CHARS = 160;
const REASONS = {
  cap: "a cap took them",
  ttl: "they were too old",
  mixed: "caps, age or a restart took them",
  recreated: "the topic was deleted and made anew",
  source_trim: "the source of a router lost them before they could be copied",
  restart: "they were not promised to survive, and did not",
  damage: "they could not be read, and a repair gave them up",
};

export function recordLine(record) {
  const { $seq: seq, $ts: ts, $node: node, $tag: tag, meta, data } = record;
  const summary = h(
    "summary",
    { class: "record-head" },
    h("span", { class: "record-seq" }, count(seq)),
    h("time", { class: "record-time", datetime: new Date(ts).toISOString() }, when(ts)),
    tag && badge(tag, "info"),
    h("span", { class: "record-preview" }, preview(data)),
  );
  const line = h("details", { class: "record", data: { seq } }, summary);
  const open = () => {
    if (!line.open || line.childElementCount > 1) return;
    line.append(h("div", { class: "record-body" }, about({ Node: node, Tag: tag, Meta: meta }), jsonView(data)));
  };
  line.addEventListener("toggle", open);
  return line;
}

export function gapLine({ gap_from: from, gap_to: to, reason }) {
  const seqs = from === to ? `Seq ${count(from)} is` : `Seqs ${count(from)} to ${count(to)} are`;
  return h("div", { class: "gap", role: "note" }, icon("alert"), h("strong", null, "A gap. "), `${seqs} missing: ${REASONS[reason] ?? reason}.`);
}

function preview(data) {
  const text = typeof data === "string" ? data : JSON.stringify(data);
  return text.length > PREVIEW_CHARS ? `${text.slice(0, PREVIEW_CHARS)}…` : text;
}

function about(fields) {
  const lines = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null);
  if (lines.length === 0) return null;
  const shown = (value) => (typeof value === "string" ? value : jsonView(value));
  return h("dl", { class: "record-about" }, lines.map(([name, value]) => [h("dt", null, name), h("dd", null, shown(value))]));
}
