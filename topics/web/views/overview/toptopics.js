/* The topics that get most, with a line of how that went since the page was opened. */

import { at } from "../../kit/api.js";
import { sparkline } from "../../kit/chart.js";
import { h } from "../../kit/dom.js";
import { rate } from "../../kit/format.js";
import { table } from "../../kit/table.js";

const KEPT = 60;
const SHOWN = 10;

export function topTopics() {
  const lines = new Map();
  const list = table({
    label: "Busiest topics",
    key: (row) => row.topic,
    sort: { name: "rate", descending: true },
    empty: h("p", { class: "none" }, "Nothing is being written at the moment."),
    columns: [
      { name: "topic", label: "Topic", value: ({ topic }) => topic, cell: topicLink },
      { name: "line", label: "Lately", cell: (row) => lines.get(row.topic).spark },
      { name: "rate", label: "Records", align: "end", value: rateOf, cell: (row) => rate(rateOf(row)) },
    ],
  });
  const show = list.update;

  /* Each look adds a point; a topic that is not among the busiest any more begins anew. */
  function update(rows) {
    const shown = rows.slice(0, SHOWN);
    const names = new Set(shown.map(({ topic }) => topic));
    for (const topic of lines.keys()) if (!names.has(topic)) lines.delete(topic);
    for (const { topic, records_per_s: now } of shown) {
      const line = lines.get(topic) ?? { values: [], spark: sparkline([], `Rate of ${topic} lately`) };
      line.values = [...line.values, now].slice(-KEPT);
      line.spark.update(line.values);
      lines.set(topic, line);
    }
    show(shown);
  }

  return Object.assign(list, { update });
}

function topicLink({ topic }) {
  return h("a", { href: at`/topics/${topic}` }, topic);
}

function rateOf({ records_per_s: now }) {
  return now;
}
