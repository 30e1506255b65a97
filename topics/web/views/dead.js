/* Dead letters: where there are any, and those of one heap, queue or topic with groups. */

import { api, at } from "../kit/api.js";
import { h } from "../kit/dom.js";
import { empty } from "../kit/empty.js";
import { ago, bytes, count } from "../kit/format.js";
import { every } from "../kit/live.js";
import { heading, toolbar } from "../kit/state.js";
import { table } from "../kit/table.js";
import { HeapLetters } from "./dead/heapletters.js";
import { letterList } from "./dead/letters.js";
import { QueueLetters } from "./dead/queueletters.js";

const REFRESH_MS = 5000;
const PATHS = { heap: "heaps", queue: "queues", log: "topics" };

export default {
  title: ({ topic }) => (topic ? `Dead letters of ${topic}` : "Dead letters"),
  style: ["work", "dead"],

  mount(root, context) {
    return context.params.topic ? showOne(root, context) : showAll(root, context);
  },
};

async function showAll(root, { signal }) {
  const list = placeTable();
  root.append(heading("Dead letters", { about: "Jobs and messages that failed too often. They wait here until somebody takes them back or deletes them." }), list);
  await every(REFRESH_MS, signal, async () => {
    const { topics } = await api.get("/v0/dead_letters", { signal });
    list.update(topics);
  });
}

function placeTable() {
  return table({
    label: "Where dead letters are",
    key: (row) => row.topic,
    sort: { name: "count", descending: true },
    empty: empty({
      name: "dead",
      title: "Nowhere to go yet",
      text: "A heap keeps what failed too often by itself. A queue does when it has a dead-letter topic:",
      commands: ["topics topic create jobs --type queue --max-deliveries 5 --dead-letter jobs.dead"],
    }),
    columns: [
      { name: "sources", label: "From", value: (row) => row.sources[0].topic, cell: sourcesCell },
      { name: "topic", label: "Kept in", value: (row) => row.topic, cell: (row) => (row.exists ? h("a", { href: at`/topics/${row.topic}` }, row.topic) : row.topic) },
      { name: "count", label: "Records", align: "end", value: (row) => row.count, cell: (row) => count(row.count) },
      { name: "bytes", label: "Size", align: "end", value: (row) => row.bytes, cell: (row) => bytes(row.bytes) },
      { name: "last", label: "Last died", value: (row) => row.last_write_ts, cell: (row) => ago(row.last_write_ts) },
    ],
  });
}

function sourcesCell(row) {
  return h("span", { class: "words" }, row.sources.map(({ topic }) => h("a", { href: at`/dead/${topic}` }, topic)));
}

/* `topic` is where they come from, or where they are kept: then it may be from several. */
async function showOne(root, context) {
  const { params, go, signal, me } = context;
  const { topics } = await api.get("/v0/dead_letters", { signal });
  const place = topics.find((each) => each.sources.some(({ topic }) => topic === params.topic)) ?? topics.find((each) => each.topic === params.topic);
  if (place === undefined) {
    const back = h("a", { href: "/dead", class: "button" }, "All dead letters");
    root.append(heading(params.topic), empty({ name: "dead", title: "No dead letters come from here", text: `Nothing says where dead letters of ${params.topic} would go.`, actions: [back] }));
    return;
  }
  const source = place.sources.find(({ topic }) => topic === params.topic) ?? place.sources[0];
  const letters = source.type === "heap" ? new HeapLetters(source.topic) : new QueueLetters(source.topic, place);
  const list = letterList(letters, { signal, me });
  root.append(
    heading("Dead letters", {
      about: `Of ${source.topic}, kept in ${place.topic}.`,
      actions: [h("a", { class: "button", href: `/${PATHS[source.type]}/${encodeURIComponent(source.topic)}` }, `To ${source.topic}`)],
    }),
    ...(place.sources.length > 1 ? [toolbar(sourcePicker(place.sources, source, go))] : []),
    list,
  );
  await list.load();
}

function sourcePicker(sources, source, go) {
  const change = (event) => go(at`/dead/${event.target.value}`);
  const options = sources.map(({ topic }) => h("option", { value: topic }, topic));
  return h("select", { "aria-label": "Which they come from", value: source.topic, on: { change } }, options);
}
