/* All topics: searched by name, sorted by anything, however many there are; and a new one. */

import { h, replace, setText } from "../kit/dom.js";
import { empty } from "../kit/empty.js";
import { ago, bytes, count, counted, rate } from "../kit/format.js";
import { every } from "../kit/live.js";
import { badge, button, heading, loading, toolbar } from "../kit/state.js";
import { virtualList } from "../kit/virtual.js";
import { createTopic } from "./topic/create.js";
import { topicLink, topicPath } from "./topic/links.js";
import { Catalogue } from "./topics/catalogue.js";

const REFRESH_MS = 3000;
const SEARCH_MS = 200;
const ROW_PX = 40;
const KIND_BADGES = { log: "quiet", queue: "info", heap: "warning" };
const COLUMNS = ["Topic", "Type", "Records", "Bytes", "Rate", "Last write"];
const SORTS = [
  { value: "topic", label: "Name" },
  { value: "type", label: "Type" },
  { value: "count", label: "Records" },
  { value: "bytes", label: "Bytes" },
  { value: "records_per_s", label: "Rate" },
  { value: "last_write_ts", label: "Last write" },
];
const KINDS = [
  { value: "", label: "All types" },
  { value: "log", label: "Logs" },
  { value: "queue", label: "Queues" },
  { value: "heap", label: "Heaps" },
];

export default {
  title: () => "Topics",
  style: "topic",

  async mount(root, { query, go, signal, me }) {
    const catalogue = new Catalogue(() => draw());
    catalogue.search = query.get("search") ?? "";
    const place = h("div", { class: "topic-list" }, loading("Loading topics"));
    const found = h("p", { class: "found", role: "status" });
    const list = virtualList({
      rowHeight: ROW_PX,
      count: 0,
      row: (index) => cells(catalogue.row(index)),
      label: "Topics",
      columns: COLUMNS,
      class: "topics-grid",
    });
    const make = async () => {
      const name = await createTopic();
      if (name !== null) go(topicPath(name));
    };
    const makeButton = () => me.may("admin") && button("New topic", make, { kind: "primary", name: "plus" });
    root.append(
      heading("Topics", { about: "Logs, queues and heaps. What is in one is behind its name.", actions: [makeButton()] }),
      tools(catalogue, signal, () => {
        catalogue.arrange();
        draw();
        list.scrollTo(0);
      }),
      found,
      place,
    );

    function draw() {
      const { shown, topics, isWhole } = catalogue;
      setText(found, said(shown.length, topics.size, isWhole));
      if (topics.size === 0 && isWhole) replace(place, nothing(makeButton()));
      else if (list.parentNode !== place) replace(place, list);
      list.update({ count: shown.length });
    }

    await catalogue.load(signal);
    await every(REFRESH_MS, signal, async () => {
      const [first, last] = list.range();
      await catalogue.refresh(catalogue.shown.slice(first, last + 1), signal);
    });
  },
};

function tools(catalogue, signal, changed) {
  let timer = 0;
  const search = h("input", { type: "search", placeholder: "Search by name", "aria-label": "Search topics by name", value: catalogue.search, signal, on: { input: typed } });
  const kind = choice("Type", KINDS, (value) => {
    catalogue.kind = value;
    changed();
  });
  const sort = choice("Sort by", SORTS, (value) => {
    // Of figures and times one wants to see the largest first.
    catalogue.sort = { name: value, descending: !["topic", "type"].includes(value) };
    changed();
  });
  const turn = button("Turn around", () => {
    catalogue.sort.descending = !catalogue.sort.descending;
    changed();
  }, { name: "sort" });
  signal.addEventListener("abort", () => clearTimeout(timer));

  function typed() {
    clearTimeout(timer);
    timer = setTimeout(() => {
      catalogue.search = search.value.trim();
      changed();
      catalogue.look(signal).catch(() => {});
    }, SEARCH_MS);
  }

  return toolbar(search, kind, sort, turn);
}

function choice(label, options, chosen) {
  const select = h(
    "select",
    { "aria-label": label, on: { change: () => chosen(select.value) } },
    options.map(({ value, label: text }) => h("option", { value }, text)),
  );
  return select;
}

function cells(row) {
  if (row === null) return null;
  const { topic, type, partitions } = row;
  return [
    topicLink(topic),
    badge(type, KIND_BADGES[type]),
    h("span", { class: "figure" }, count(row.count), partitions > 1 && h("span", { class: "faint" }, ` in 1 of ${partitions}`)),
    h("span", { class: "figure" }, bytes(row.bytes)),
    h("span", { class: "figure" }, row.records_per_s ? rate(row.records_per_s) : "–"),
    h("span", { class: "figure" }, ago(row.last_write_ts)),
  ];
}

function said(shown, loaded, isWhole) {
  const more = isWhole ? "" : ", more are coming…";
  return shown === loaded ? counted(loaded, "topic") + more : `${count(shown)} of ${counted(loaded, "topic")}${more}`;
}

function nothing(action) {
  return empty({
    name: "topics",
    title: "No topics yet",
    text: "A topic is made by the first write to it:",
    commands: [`topics write orders '{"sku": "A1"}'`, "topics topic create jobs --type queue"],
    actions: [action].filter(Boolean),
  });
}
