/* The last events: starts, alerts that came and went. */

import { at } from "../../kit/api.js";
import { h } from "../../kit/dom.js";
import { ago, when } from "../../kit/format.js";
import { badge } from "../../kit/state.js";
import { table } from "../../kit/table.js";

const KINDS = { started: "info", alert: "warning", over: "ok", mended: "info" };

const COLUMNS = [
  { name: "at", label: "When", value: ({ at }) => at, cell: ({ at }) => h("time", { title: when(at) }, ago(at)) },
  { name: "kind", label: "What", value: ({ kind }) => kind, cell: ({ kind }) => badge(kind, KINDS[kind]) },
  { name: "text", label: "Text", sort: false, cell: ({ text, topic }) => (topic ? topicLink(topic, text) : text) },
];

/* Gives an element with `update(events)`. */
export function eventTable() {
  return table({ label: "Events", key: ({ at, kind, text }) => `${at} ${kind} ${text}`, columns: COLUMNS });
}

function topicLink(topic, text) {
  return h("a", { href: at`/topics/${topic}` }, text);
}
