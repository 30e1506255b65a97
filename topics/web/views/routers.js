/* Routers: what is copied where, and what lags; as a net and as a table. */

import { api, at } from "../kit/api.js";
import { confirm } from "../kit/dialog.js";
import { h, replace, setText } from "../kit/dom.js";
import { empty } from "../kit/empty.js";
import { count, counted, duration } from "../kit/format.js";
import { every } from "../kit/live.js";
import { badge, button, heading, section, toolbar } from "../kit/state.js";
import { table } from "../kit/table.js";
import { toast } from "../kit/toast.js";
import { createRouter } from "./routers/create.js";
import { graph } from "./routers/graph.js";
import { topicLink } from "./topic/links.js";

const REFRESH_MS = 2000;
const PAGE_SIZE = 1000;
/* More lines than these nobody can tell apart: those that are furthest behind are drawn. */
const SHOWN_MAX = 250;

export default {
  title: () => "Routers",
  style: ["topic", "routers"],

  async mount(root, { query, go, signal, me }) {
    let routers = [];
    const search = h("input", {
      type: "search",
      placeholder: "Search by topic or router",
      "aria-label": "Search routers",
      value: query.get("search") ?? "",
      signal,
      on: { input: () => draw() },
    });
    const found = h("p", { class: "found", role: "status" });
    const make = async () => {
      const made = await createRouter({ isTaken: (name) => routers.some(({ router }) => router === name) });
      if (made !== null) toast(`The router ${made.router} copies ${made.source} to ${made.dest}.`);
      poll.now();
    };
    const makeButton = () => me.may("admin") && button("New router", make, { kind: "primary", name: "plus" });
    const net = graph(go);
    const list = routerTable(me, () => poll.now());
    const place = h("div", { class: "routers-parts" }, section("The net", net), section("All routers", list));
    root.append(
      heading("Routers", { about: "A router copies each record that a topic gets into another topic.", actions: [makeButton()] }),
      toolbar(search, found),
      place,
    );

    function draw() {
      if (routers.length === 0) {
        setText(found, "");
        replace(place, nothing(makeButton()));
        return;
      }
      if (!place.contains(net)) replace(place, section("The net", net), section("All routers", list));
      const wanted = search.value.trim().toLowerCase();
      const fits = routers.filter((each) => [each.router, each.source, each.dest].some((name) => name.toLowerCase().includes(wanted)));
      const shown = [...fits].sort((one, other) => other.lag_records - one.lag_records).slice(0, SHOWN_MAX);
      const all = fits.length === shown.length;
      setText(found, all ? counted(fits.length, "router") : `${count(shown.length)} of ${counted(fits.length, "router")}: those furthest behind`);
      net.update(shown.sort((one, other) => (one.router < other.router ? -1 : 1)));
      list.update(shown);
    }

    const poll = every(REFRESH_MS, signal, async () => {
      routers = await all(signal);
      draw();
    });
    await poll;
  },
};

async function all(signal) {
  const found = [];
  let cursor = "";
  do {
    const page = await api.get("/v0/routers", { query: { page_size: PAGE_SIZE, cursor }, signal });
    found.push(...page.routers);
    cursor = page.next_cursor ?? "";
  } while (cursor);
  return found;
}

function routerTable(me, changed) {
  const columns = [
    { name: "router", label: "Router", value: (row) => row.router, cell: (row) => h("span", { class: "topic-name" }, row.router) },
    { name: "source", label: "From", value: (row) => row.source, cell: (row) => topicLink(row.source) },
    { name: "dest", label: "To", value: (row) => row.dest, cell: (row) => topicLink(row.dest) },
    { name: "lag", label: "Behind by", align: "end", value: (row) => row.lag_records, cell: lagCell },
    { name: "forwarded", label: "Forwarded", align: "end", value: (row) => row.forwarded_total, cell: (row) => count(row.forwarded_total) },
    { name: "guarantee", label: "Guarantee", value: (row) => row.guarantee, cell: (row) => row.guarantee.replaceAll("_", " ") },
    { name: "state", label: "State", cell: (row) => (row.stalled ? h("span", null, badge("stalled", "bad"), ` ${row.stalled}`) : badge("going", "ok")) },
  ];
  if (me.may("delete")) {
    columns.push({ name: "actions", label: h("span", { class: "unseen" }, "Actions"), class: "actions", cell: (row) => button("Delete", () => remove(row, changed), { kind: "quiet danger", "aria-label": `Delete ${row.router}` }) });
  }
  return table({ label: "Routers", rows: null, key: (row) => row.router, sort: { name: "router", descending: false }, columns });
}

function lagCell({ lag_records: records, lag_ms: ms }) {
  return records === 0 ? "0" : `${count(records)}, ${duration(ms)}`;
}

async function remove({ router, source, dest, forwarded_total: forwarded }, changed) {
  const agreed = await confirm({
    title: "Delete this router?",
    body: `From now on nothing is copied from ${source} to ${dest}. The ${counted(forwarded, "copy", "copies")} that it made stay.`,
    word: router,
    action: "Delete",
    danger: true,
  });
  if (!agreed) return;
  try {
    await api.remove(at`/v0/routers/${router}`);
    toast(`The router ${router} is gone.`);
  } catch (error) {
    toast(error.message, { kind: "bad" });
  }
  changed();
}

function nothing(action) {
  return empty({
    name: "routers",
    title: "No routers yet",
    text: "A router copies each record that a topic gets into another one, in order. Make one here, or from the command line:",
    commands: ["topics router put orders archive", "topics router put orders shop --tag-prefix public:"],
    actions: [action].filter(Boolean),
  });
}
