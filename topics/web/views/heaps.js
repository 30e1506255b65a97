/* All heaps: how much waits in each, and how much nobody could do. */

import { at } from "../kit/api.js";
import { h } from "../kit/dom.js";
import { empty } from "../kit/empty.js";
import { count } from "../kit/format.js";
import { searched } from "../kit/searched.js";
import { badge, button, heading } from "../kit/state.js";
import { table } from "../kit/table.js";
import { toast } from "../kit/toast.js";
import { createHeap } from "./heap/creating.js";

export default {
  title: () => "Heaps",
  style: "work",

  async mount(root, { go, signal, me }) {
    const list = searched({ what: "Names", path: "/v1/heaps", pages: { name: "heaps", next: "next_page_token", cursor: "page_token" }, list: heapTable() });
    const create = async () => {
      const made = await createHeap();
      if (made === null) return;
      toast(`Heap ${made.topic} is there.`);
      go(at`/heaps/${made.topic}`);
    };
    root.append(
      heading("Heaps", {
        about: "Messages that are taken by priority. Whoever pops gets the best there is.",
        actions: me.may("admin") ? [button("New heap", create, { kind: "primary", name: "plus" })] : [],
      }),
      list,
    );
    await list.begin(signal);
  },
};

function heapTable() {
  const figure = (name, label, value) => ({ name, label, align: "end", value, cell: (row) => count(value(row)) });
  return table({
    label: "Heaps",
    key: (row) => row.topic,
    sort: { name: "topic", descending: false },
    empty: empty({
      name: "heaps",
      title: "No heaps here",
      text: "A heap holds messages by priority. Make one, put something in, and take the best:",
      commands: ["topics heap create jobs", "topics heap push jobs '{\"task\": \"resize\"}' --priority 5", "topics heap pop jobs"],
    }),
    columns: [
      { name: "topic", label: "Heap", value: (row) => row.topic, cell: (row) => h("a", { href: at`/heaps/${row.topic}` }, row.topic) },
      { name: "mode", label: "Best", value: (row) => row.mode, cell: (row) => badge(row.mode === "MIN" ? "lowest" : "highest") },
      figure("ready", "Ready", (row) => row.stats?.ready_messages),
      figure("leased", "Leased", (row) => row.stats?.inflight_messages),
      figure("delayed", "Delayed", (row) => row.stats?.delayed_messages),
      { name: "dead", label: "Dead", align: "end", value: (row) => row.stats?.dlq_messages, cell: deadCell },
      figure("enqueued", "Enqueued ever", (row) => row.stats?.total_enqueues),
      figure("partitions", "Partitions", (row) => row.partitions),
      figure("bound", "K bound", (row) => row.top_k_bound),
    ],
  });
}

function deadCell(row) {
  const dead = row.stats?.dlq_messages;
  return dead ? h("a", { class: "bad", href: at`/dead/${row.topic}` }, count(dead)) : count(dead);
}
