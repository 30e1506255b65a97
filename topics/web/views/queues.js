/* All queues: what is ready, in somebody's hands, waiting for its time, and dead. */

import { api } from "../kit/api.js";
import { h, replace, setText } from "../kit/dom.js";
import { empty } from "../kit/empty.js";
import { ago, count, counted } from "../kit/format.js";
import { every } from "../kit/live.js";
import { badge, button, heading, toolbar } from "../kit/state.js";
import { table } from "../kit/table.js";
import { PARTITIONS_SUMMED, wholeQueue } from "./queue/partitions.js";
import { createTopic } from "./topic/create.js";
import { queueLink, queuePath } from "./topic/links.js";

const REFRESH_MS = 3000;
const PAGE_SIZE = 200;
const SEARCH_MS = 200;

export default {
  title: () => "Queues",
  style: ["topic", "queues"],

  async mount(root, { go, signal, me }) {
    let search = "";
    let wanted = PAGE_SIZE;
    let timer = 0;
    const make = async () => {
      const name = await createTopic({ type: "queue", title: "New queue" });
      if (name !== null) go(queuePath(name));
    };
    const makeButton = () => me.may("admin") && button("New queue", make, { kind: "primary", name: "plus" });
    const list = queueTable(makeButton());
    const found = h("p", { class: "found", role: "status" });
    const typed = () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        search = field.value.trim();
        wanted = PAGE_SIZE;
        poll.now();
      }, SEARCH_MS);
    };
    const field = h("input", { type: "search", placeholder: "Search by name", "aria-label": "Search queues by name", signal, on: { input: typed } });
    const more = button("Show more", () => {
      wanted += PAGE_SIZE;
      poll.now();
    }, { hidden: true });
    signal.addEventListener("abort", () => clearTimeout(timer));
    root.append(
      heading("Queues", { about: "A job waits until a worker has it, and is gone when it is done.", actions: [makeButton()] }),
      toolbar(field, found),
      list,
      more,
    );
    const poll = every(REFRESH_MS, signal, async () => {
      const { queues, isAll } = await ask(search, wanted, signal);
      list.update(queues);
      more.hidden = isAll;
      setText(found, queues.length === 0 ? "" : `${isAll ? "" : "The first "}${counted(queues.length, "queue")}`);
      if (search && queues.length === 0) replace(list, h("p", { class: "none" }, `No queue has ${search} in its name.`));
    });
    await poll;
  },
};

/* So many queues, and whether these are all. A page may be short and go on. */
async function ask(contains, wanted, signal) {
  const found = [];
  let cursor = "";
  do {
    const query = { type: "queue", contains, cursor, page_size: Math.min(1000, wanted - found.length) };
    const page = await api.get("/v0/topics", { query, signal });
    found.push(...page.topics);
    cursor = page.next_cursor ?? "";
  } while (cursor && found.length < wanted);
  return { queues: await Promise.all(found.map((first) => wholeQueue(first, signal))), isAll: !cursor };
}

function queueTable(action) {
  const figure = (name, label) => ({ name, label, align: "end", value: (row) => row[name], cell: (row) => count(row[name]) });
  return table({
    label: "Queues",
    rows: null,
    key: (row) => row.topic,
    sort: { name: "topic", descending: false },
    empty: empty({
      name: "queues",
      title: "No queues yet",
      text: "Make one here, or put the first job from the command line and start a worker:",
      commands: [`topics queue put jobs '{"send": "welcome"}'`, "topics work tasks:handle --queue jobs"],
      actions: [action].filter(Boolean),
    }),
    columns: [
      { name: "topic", label: "Queue", value: (row) => row.topic, cell: nameCell },
      figure("ready", "Ready"),
      figure("in_flight", "Leased"),
      figure("delayed", "Delayed"),
      { name: "dead_lettered", label: "Dead", align: "end", value: (row) => row.dead_lettered, cell: deadCell },
      { name: "last_write_ts", label: "Last put", value: (row) => row.last_write_ts ?? 0, cell: (row) => ago(row.last_write_ts) },
    ],
  });
}

function nameCell({ topic, partitions }) {
  const parts = partitions > PARTITIONS_SUMMED ? `the first ${PARTITIONS_SUMMED} of ${partitions} partitions` : `${partitions} partitions`;
  return h("div", null, queueLink(topic), partitions > 1 && h("span", { class: "below" }, parts));
}

function deadCell({ dead_lettered: dead, problem }) {
  if (problem) return h("span", { title: problem }, badge(`${count(dead)}, and some cannot go`, "bad"));
  return dead > 0 ? badge(count(dead), "warning") : "0";
}
