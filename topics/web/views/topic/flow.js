/* Where a topic's records come from and go to: routers in and out, and consumer groups, each with its lag. */

import { api, at } from "../../kit/api.js";
import { h } from "../../kit/dom.js";
import { empty } from "../../kit/empty.js";
import { count, duration } from "../../kit/format.js";
import { every } from "../../kit/live.js";
import { badge, section } from "../../kit/state.js";
import { table } from "../../kit/table.js";
import { topicLink } from "./links.js";

const REFRESH_MS = 2000;
const PAGE_SIZE = 1000;

export function flow({ topic, signal }) {
  const into = routerTable("Routers in", "source", empty({ name: "routers", title: "No router brings records here" }));
  const out = routerTable(
    "Routers out",
    "dest",
    empty({ name: "routers", title: "No router takes from here", text: "One copies each record into another topic:", commands: [`topics router put ${topic} ${topic}.copy`] }),
  );
  const groups = groupTable(topic);
  every(REFRESH_MS, signal, async () => {
    const ask = (query) => api.get("/v0/routers", { query: { ...query, page_size: PAGE_SIZE }, signal });
    const [coming, going, found] = await Promise.all([ask({ dest: topic }), ask({ source: topic }), api.get(at`/v0/topics/${topic}/groups`, { signal })]);
    into.update(coming.routers);
    out.update(going.routers);
    groups.update(found.groups);
  });
  return h("div", null, section("Routers in", into), section("Routers out", out), section("Groups", groups));
}

function routerTable(label, end, nothing) {
  return table({
    label,
    rows: null,
    key: (row) => row.router,
    sort: { name: "router", descending: false },
    empty: nothing,
    columns: [
      { name: "router", label: "Router", value: (row) => row.router, cell: (row) => h("span", { class: "topic-name" }, row.router) },
      { name: end, label: end === "source" ? "From" : "To", value: (row) => row[end], cell: (row) => topicLink(row[end]) },
      { name: "lag", label: "Lag", align: "end", value: (row) => row.lag_records, cell: (row) => lag(row) },
      { name: "forwarded", label: "Forwarded", align: "end", value: (row) => row.forwarded_total, cell: (row) => count(row.forwarded_total) },
      { name: "state", label: "State", cell: (row) => (row.stalled ? badge(row.stalled, "bad") : badge("going", "ok")) },
    ],
  });
}

function lag({ lag_records: records, lag_ms: ms }) {
  return records === 0 ? "0" : `${count(records)}, ${duration(ms)}`;
}

function groupTable(topic) {
  return table({
    label: "Groups",
    rows: null,
    key: (row) => `${row.group}/${row.partition ?? 0}`,
    sort: { name: "group", descending: false },
    empty: empty({ name: "groups", title: "No groups", text: "A group keeps the place of several consumers:", commands: [`topics group consume ${topic} billing`] }),
    columns: [
      { name: "group", label: "Group", value: (row) => row.group, cell: (row) => h("a", { href: `/groups/${encodeURIComponent(topic)}/${encodeURIComponent(row.group)}` }, row.group) },
      { name: "partition", label: "Partition", align: "end", value: (row) => row.partition ?? 0 },
      { name: "lag", label: "Lag", align: "end", value: (row) => row.lag, cell: (row) => count(row.lag) },
      { name: "in_flight", label: "In flight", align: "end", value: (row) => row.in_flight, cell: (row) => count(row.in_flight) },
      { name: "members", label: "Consumers", align: "end", value: (row) => row.member_count, cell: (row) => count(row.member_count) },
      { name: "state", label: "State", cell: (row) => (row.paused ? badge("paused", "warning") : badge("going", "ok")) },
    ],
  });
}
