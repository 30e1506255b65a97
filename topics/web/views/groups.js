/* All consumer groups: how far each lags behind, who works for it, and how long its oldest record has waited. */

import { at } from "../kit/api.js";
import { h } from "../kit/dom.js";
import { empty } from "../kit/empty.js";
import { ago, count, when } from "../kit/format.js";
import { searched } from "../kit/searched.js";
import { badge, heading } from "../kit/state.js";
import { table } from "../kit/table.js";
import { groupState } from "./group/state.js";

export default {
  title: () => "Groups",
  style: "work",

  async mount(root, { signal }) {
    const list = searched({ what: "Topics", path: "/v0/groups", pages: { name: "groups" }, list: groupTable() });
    root.append(
      heading("Groups", { about: "Positions in topics that the engine keeps and consumers share. The lag is what a group has not acked yet." }),
      list,
    );
    await list.begin(signal);
  },
};

function groupTable() {
  const figure = (name, label) => ({ name, label, align: "end", value: (row) => row[name], cell: (row) => count(row[name]) });
  return table({
    label: "Groups",
    key: (row) => `${row.topic}/${row.group}`,
    sort: { name: "lag", descending: true },
    empty: empty({
      name: "groups",
      title: "No groups here",
      text: "A group begins with its first consumer. Take records of a topic together, and say when they are done:",
      commands: ["topics group consume orders billing --limit 10", "topics group ack orders billing 10"],
    }),
    columns: [
      { name: "group", label: "Group", value: (row) => row.group, cell: (row) => h("a", { href: at`/groups/${row.topic}/${row.group}` }, row.group) },
      { name: "topic", label: "Topic", value: (row) => row.topic, cell: (row) => h("a", { href: at`/topics/${row.topic}` }, row.topic) },
      { name: "state", label: "State", value: (row) => row.paused, cell: stateCell },
      figure("lag", "Lag"),
      figure("in_flight", "In flight"),
      figure("waiting", "To come again"),
      figure("consumers", "Consumers"),
      { name: "oldest", label: "Oldest unacked", value: (row) => row.oldest_unacked_ts, cell: oldestCell },
      figure("dead_lettered", "Dead"),
      figure("lost_count", "Lost"),
      figure("partitions", "Partitions"),
    ],
  });
}

function stateCell(row) {
  return h("span", { class: "words" }, groupState(row), row.protected && badge("kept for"));
}

function oldestCell(row) {
  return row.oldest_unacked_ts === null ? "–" : h("time", { title: when(row.oldest_unacked_ts) }, ago(row.oldest_unacked_ts));
}
