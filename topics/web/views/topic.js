/* One topic: how it is, what became of its seqs, and what one can do with it. */

import { api, at } from "../kit/api.js";
import { sparkline } from "../kit/chart.js";
import { h, replace } from "../kit/dom.js";
import { ago, bytes, count, rate, when } from "../kit/format.js";
import { every } from "../kit/live.js";
import { badge, heading, section, stat, stats, tabs } from "../kit/state.js";
import { browse } from "./topic/browse.js";
import { flow } from "./topic/flow.js";
import { queueLink, queuePath, topicPath } from "./topic/links.js";
import { partitionChoice } from "./topic/partition.js";
import { removing } from "./topic/remove.js";
import { seqMap } from "./topic/seqmap.js";
import { settings } from "./topic/settings.js";
import { tail } from "./topic/tail.js";
import { writeForm } from "./topic/write.js";

const REFRESH_MS = 2000;
const RATES_KEPT = 60;
const BUCKETS = 240;

export default {
  title: ({ topic }) => topic,
  style: "topic",

  async mount(root, { params: { topic }, query, go, signal, me }) {
    const partition = Number(query.get("partition") ?? 0);
    const path = at`/v0/topics/${topic}`;
    const ask = () => api.get(path, { query: { partition, touch: false }, signal });
    let state = await ask();
    const partitions = state.partitions ?? 1;
    const place = { topic, partition, partitions, signal };
    const records = browse({ ...place, headSeq: () => state.head_seq });
    const figures = new Figures();
    const notices = h("div", { class: "notices" });
    const map = seqMap((seq) => {
      parts.open("records");
      records.show(seq);
    });
    const parts = tabs(
      [
        { name: "records", label: "Records", content: records },
        { name: "live", label: "Live", content: () => tail(place) },
        me.may("write") && { name: "write", label: "Write", content: () => writeForm({ ...place, type: state.type, written: () => poll.now() }) },
        { name: "flow", label: "Routers and groups", content: () => flow(place) },
        { name: "config", label: "Config", content: () => settings({ topic, state, me, saved: () => poll.now() }) },
        { name: "delete", label: "Delete", content: () => removing({ ...place, go, me, current: () => state, changed: () => poll.now() }) },
      ].filter(Boolean),
      { open: query.get("tab") ?? "records", label: "Parts of the topic", onChange: (name) => keep(name) },
    );
    root.append(
      heading(topic, { about: about(state), actions: [kindOf(topic, state), partitionChoice(topicPath(topic), { ...place, go })] }),
      notices,
      figures.element,
      section("Where its seqs are", map),
      parts,
    );
    const poll = every(REFRESH_MS, signal, async () => {
      const [now, found] = await Promise.all([ask(), api.get(`${path}/map`, { query: { partition, buckets: BUCKETS }, signal })]);
      state = now;
      figures.update(state);
      map.update(found.buckets);
      replace(notices, troubles(state));
    });
    await poll;
  },
};

class Figures {
  constructor() {
    this.rates = [];
    this.spark = sparkline([], "Records a second, in the last two minutes");
    this.records = stat("Records", "–");
    this.bytes = stat("Bytes", "–");
    this.rate = stat("Rate", "–");
    this.seqs = stat("Seqs", "–");
    this.written = stat("Last write", "–");
    this.read = stat("Last read", "–");
    this.element = stats(this.records, this.bytes, h("div", { class: "with-spark" }, this.rate, this.spark), this.seqs, this.written, this.read);
  }

  update(state) {
    this.rates.push(state.records_per_s);
    if (this.rates.length > RATES_KEPT) this.rates.shift();
    this.spark.update(this.rates);
    this.records.update(count(state.count));
    this.bytes.update(bytes(state.bytes));
    this.rate.update(rate(state.records_per_s));
    const ends = state.head_seq < state.earliest_seq ? "none" : `${count(state.earliest_seq)} – ${count(state.head_seq)}`;
    this.seqs.update(ends, `epoch ${state.epoch}`);
    this.written.update(ago(state.last_write_ts), when(state.last_write_ts));
    this.read.update(ago(state.last_read_ts), when(state.last_read_ts));
  }
}

/* The part that is open is in the address, so that it can be sent to somebody. */
function keep(name) {
  const address = new URL(location.href);
  if (name === "records") address.searchParams.delete("tab");
  else address.searchParams.set("tab", name);
  history.replaceState(null, "", address);
}

function about({ type, config }) {
  return `A ${type}, ${config.durability}${config.alias ? `, also called ${config.alias}` : ""}.`;
}

function kindOf(topic, { type }) {
  if (type === "queue") return h("a", { href: queuePath(topic), class: "button" }, "As a queue");
  return type === "heap" && h("a", { href: `/heaps/${encodeURIComponent(topic)}`, class: "button" }, "As a heap");
}

function troubles(state) {
  const lines = [];
  if (state.stopped) lines.push(h("p", { class: "notice bad", role: "alert" }, badge("stopped", "bad"), ` It takes no writes any more: ${state.stopped}`));
  if (state.holding?.overrun_count > 0) {
    const many = count(state.holding.overrun_count);
    lines.push(h("p", { class: "notice warning" }, badge("overrun", "warning"), ` ${many} records went although an archive or a group needed them.`));
  }
  if (state.queue?.dead_letter_error) {
    lines.push(h("p", { class: "notice bad" }, badge("dead letters", "bad"), ` ${state.queue.dead_letter_error} `, queueLink(state.topic)));
  }
  return lines;
}
