/* One heap: how its priorities are spread, its partitions, its messages in order, and its config. */

import { api, at } from "../kit/api.js";
import { h } from "../kit/dom.js";
import { count } from "../kit/format.js";
import { every } from "../kit/live.js";
import { button, heading, stat, stats, tabs } from "../kit/state.js";
import { toast } from "../kit/toast.js";
import { config } from "./heap/config.js";
import { enqueueMessage } from "./heap/enqueuing.js";
import { messages } from "./heap/messages.js";
import { partitions } from "./heap/partitions.js";
import { deleteHeap, purgeHeap } from "./heap/removal.js";
import { BUCKETS, spread } from "./heap/spread.js";

const REFRESH_MS = 2000;

export default {
  title: ({ topic }) => `Heap ${topic}`,
  style: "work",

  async mount(root, { params, go, signal, me }) {
    const { topic } = params;
    const heap = await api.get(at`/v1/heaps/${topic}`, { signal });
    const figures = numbers(topic);
    const drawn = spread();
    const parts = partitions();
    const list = messages(heap, me, () => poll.now());
    const look = tabs(
      [
        { name: "messages", label: "Messages", content: list },
        { name: "partitions", label: "Partitions", content: parts },
        { name: "config", label: "Config", content: () => config(heap, me, () => poll.now()) },
      ],
      { label: "Parts of the heap" },
    );
    const enqueue = async () => {
      const put = await enqueueMessage(topic);
      if (put === null) return;
      toast(`Message ${put.message_id} is in partition ${put.partition_id}.`);
      poll.now();
    };
    root.append(
      heading(topic, {
        about: `A heap: ${heap.mode === "MIN" ? "the lowest" : "the highest"} priority is taken first.`,
        actions: [
          me.may("write") && button("Enqueue", enqueue, { kind: "primary", name: "plus" }),
          me.may("delete") && button("Empty", () => purgeHeap(topic).then((done) => done && poll.now()), { name: "delete" }),
          me.may("delete") && button("Delete", () => deleteHeap(topic).then((done) => done && go("/heaps")), { kind: "danger", name: "delete" }),
        ],
      }),
      figures,
      drawn,
      look,
    );
    const poll = every(REFRESH_MS, signal, async () => {
      const [now, told] = await Promise.all([
        api.get(at`/v1/heaps/${topic}`, { signal }),
        api.get(at`/v1/heaps/${topic}/priorities`, { query: { buckets: BUCKETS }, signal }),
        list.load(signal),
      ]);
      Object.assign(heap, now);
      figures.update(now);
      drawn.update(told, now);
      parts.update(now, told);
    });
    await poll;
  },
};

const FIGURES = {
  ready_messages: "Ready",
  inflight_messages: "Leased",
  delayed_messages: "Delayed",
  dlq_messages: "Dead letters",
  total_enqueues: "Enqueued ever",
  total_acks: "Acked ever",
  total_timeouts: "Leases run out",
};

function numbers(topic) {
  const shown = Object.entries(FIGURES).map(([name, label]) => [name, stat(label, "–")]);
  const element = stats(shown.map(([, figure]) => figure));
  const update = ({ stats: told }) => {
    for (const [name, figure] of shown) {
      const link = name === "dlq_messages" && told[name] > 0;
      figure.update(link ? h("a", { class: "bad", href: at`/dead/${topic}` }, count(told[name])) : count(told[name]));
    }
  };
  return Object.assign(element, { update });
}
