/* One queue: what waits, who holds what, and what came of the rest. */

import { api, at } from "../kit/api.js";
import { lineChart } from "../kit/chart.js";
import { h, replace } from "../kit/dom.js";
import { ago, count, counted, duration, rate, when } from "../kit/format.js";
import { every } from "../kit/live.js";
import { badge, heading, stat, stats, tabs } from "../kit/state.js";
import { leaseList } from "./queue/leases.js";
import { redriving } from "./queue/redrive.js";
import { queuePath, topicPath } from "./topic/links.js";
import { partitionChoice } from "./topic/partition.js";
import { writeForm } from "./topic/write.js";

const REFRESH_MS = 2000;
const SAMPLES_KEPT = 300;
const LINES = [
  { name: "ready", label: "Ready" },
  { name: "in_flight", label: "Leased" },
  { name: "delayed", label: "Delayed" },
];

export default {
  title: ({ topic }) => topic,
  style: ["topic", "queues"],

  async mount(root, { params: { topic }, query, go, signal, me }) {
    const partition = Number(query.get("partition") ?? 0);
    const path = at`/v0/topics/${topic}`;
    const ask = () => api.get(path, { query: { partition, touch: false }, signal });
    // Whatever is no queue is refused here, in the server's words.
    const look = () => api.get(`${path}/leases`, { query: { partition, limit: 1 }, signal });
    const [state] = await Promise.all([ask(), look()]);
    const partitions = state.partitions ?? 1;
    const place = { topic, partition, partitions, me, signal, changed: () => poll.now() };
    const figures = new Figures();
    const notices = h("div", { class: "notices" });
    const parts = tabs(
      [
        { name: "leases", label: "Who holds what", content: () => leaseList({ ...place, state: "leased" }) },
        { name: "delayed", label: "Delayed", content: () => leaseList({ ...place, state: "delayed" }) },
        me.may("write") && { name: "put", label: "Put a job", content: () => writeForm({ ...place, type: "queue", submit: "Put", written: () => poll.now() }) },
        { name: "dead", label: "Dead letters", content: () => redriving({ ...place, deadLetter: state.config.dead_letter }) },
      ].filter(Boolean),
      { label: "Parts of the queue" },
    );
    const topicLink = h("a", { href: topicPath(topic), class: "button" }, "As a topic");
    root.append(
      heading(topic, { about: about(state), actions: [topicLink, partitionChoice(queuePath(topic), { ...place, go })] }),
      notices,
      figures.element,
      h("section", { class: "section", "aria-label": "Jobs over time" }, figures.chart),
      parts,
    );
    const poll = every(REFRESH_MS, signal, async () => {
      const [now, { oldest_ready: oldest }] = await Promise.all([ask(), look()]);
      figures.update(now, oldest);
      const problem = now.queue.dead_letter_error;
      replace(notices, problem && h("p", { class: "notice bad", role: "alert" }, badge("dead letters", "bad"), ` They cannot go where they should: ${problem}`));
    });
    await poll;
  },
};

class Figures {
  constructor() {
    this.times = [];
    this.values = LINES.map(() => []);
    this.ready = stat("Ready", "–");
    this.leased = stat("Leased", "–");
    this.delayed = stat("Delayed", "–");
    this.dead = stat("Dead", "–");
    this.oldest = stat("Oldest ready", "–");
    this.rate = stat("Put", "–");
    this.element = stats(this.ready, this.leased, this.delayed, this.dead, this.oldest, this.rate);
    this.chart = lineChart({ series: this.series(), times: this.times, unit: "count", label: "Jobs since this page was opened" });
  }

  series() {
    return LINES.map((line, index) => ({ ...line, values: this.values[index] }));
  }

  update({ queue, records_per_s: perSecond }, oldest) {
    this.times.push(Date.now());
    LINES.forEach(({ name }, index) => this.values[index].push(queue[name]));
    if (this.times.length > SAMPLES_KEPT) for (const column of [this.times, ...this.values]) column.shift();
    this.chart.update({ series: this.series(), times: this.times });
    this.ready.update(count(queue.ready));
    this.leased.update(count(queue.in_flight));
    this.delayed.update(count(queue.delayed));
    this.dead.update(count(queue.dead_lettered), "ever");
    this.oldest.update(oldest === null ? "none" : ago(oldest.ts), oldest === null ? "" : `job ${count(oldest.seq)}, put ${when(oldest.ts)}`);
    this.rate.update(rate(perSecond));
  }
}

function about({ config }) {
  const dies = config.max_deliveries > 0 && config.dead_letter !== null;
  const fate = dies ? `goes to ${config.dead_letter} after ${counted(config.max_deliveries, "delivery", "deliveries")}` : "is tried for ever";
  return `A lease lasts ${duration(config.lease_ms)}; a job that fails ${fate}.`;
}
