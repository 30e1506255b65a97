/* The dead letters of a queue, or of the groups of a topic: records of another topic with stamps in their meta. */

import { api, at } from "../../kit/api.js";

const PAGE = 100;
const READ = 1000;
const STEP = 100;
const STAMP = "$dead_letter_";

export class QueueLetters {
  constructor(source, place) {
    this.source = source;
    this.place = place.topic;
    this.partitions = Math.max(1, place.partitions);
    this.exists = place.exists;
  }

  filters = [
    { name: "reason", label: "Reason", hint: "the whole text" },
    { name: "tag", label: "Tag", hint: "a tag, or its beginning and a *" },
  ];

  hasPriorities = false;

  /* Reads on until a page is full or all is read; what is not meant is passed over. */
  async page(filter, cursor, signal) {
    let { partition, from } = cursor ? JSON.parse(cursor) : { partition: 0, from: 0 };
    const letters = [];
    while (this.exists && partition < this.partitions) {
      const body = { from_seq: from, limit: READ, include_tags: true, partition, ...matchOf(filter) };
      const page = await api.post(at`/v0/topics/${this.place}/diff`, body, { signal });
      for (const record of page.records) {
        const letter = letterOf(record, this.place, partition);
        if (letter === null || letter.from !== this.source || (filter.reason && letter.reason !== filter.reason)) continue;
        if (letters.length === PAGE) return { letters, next: JSON.stringify({ partition, from: letters.at(-1).seq }) };
        letters.push(letter);
      }
      from = page.next_from_seq;
      if (page.caught_up) {
        partition += 1;
        from = 0;
      }
    }
    return { letters, next: "" };
  }

  async count(filter, verb, signal) {
    let total = 0;
    for await (const { done } of this.all(verb, filter, signal, { dry_run: true, limit: null })) total += done;
    return total;
  }

  /* Letters beside each other go in one step. */
  async *some(verb, letters, signal) {
    for (const { partition, first, last } of stretches(letters)) {
      const { done, skipped } = await this.step(verb, { partition, from_seq: first - 1, before_seq: last + 1 }, signal);
      yield { done, skipped };
    }
  }

  async *all(verb, filter, signal, more = {}) {
    for (let partition = 0; this.exists && partition < this.partitions; partition += 1) {
      const wanted = { ...matchOf(filter), reason: filter.reason || null, partition, limit: STEP, ...more };
      for (let from = 0, before = null, over = false; !over; ) {
        const step = await this.step(verb, { ...wanted, from_seq: from, before_seq: before }, signal);
        yield step;
        from = step.next;
        before ??= step.head + 1;
        over = step.over;
      }
    }
  }

  async step(verb, body, signal) {
    const path = verb === "delete" ? at`/v0/topics/${this.place}/dead_letters/delete` : at`/v0/topics/${this.place}/redrive`;
    const told = await api.post(path, { source: this.source, ...body }, { signal });
    return { done: told.moved ?? told.deleted, skipped: told.skipped, next: told.next_from_seq, head: told.head_seq, over: told.done };
  }
}

function matchOf({ tag }) {
  if (!tag) return {};
  return { match: tag.endsWith("*") ? ["tag", "Glob", tag] : ["tag", "Eq", tag] };
}

function letterOf(record, place, partition) {
  const { meta = {} } = record;
  if (!(`${STAMP}from` in meta)) return null;
  return {
    key: `${partition}.${record.$seq}`,
    name: `seq ${record.$seq}`,
    seq: record.$seq,
    partition,
    from: meta[`${STAMP}from`],
    diedTs: record.$ts,
    bornTs: null,
    reason: meta[`${STAMP}reason`] ?? "",
    attempts: Number(meta[`${STAMP}deliveries`] ?? 0),
    tag: record.$tag ?? null,
    place: `${place}, partition ${partition}, seq ${record.$seq}; was seq ${meta[`${STAMP}src_seq`]} of ${meta[`${STAMP}from`]}`,
    history: [],
    message: { payload_json: record.data, meta: Object.fromEntries(Object.entries(meta).filter(([name]) => !name.startsWith(STAMP))) },
  };
}

function stretches(letters) {
  const sorted = [...letters].sort((one, other) => one.partition - other.partition || one.seq - other.seq);
  const found = [];
  for (const { partition, seq } of sorted) {
    const last = found.at(-1);
    if (last && last.partition === partition && last.last === seq - 1) last.last = seq;
    else found.push({ partition, first: seq, last: seq });
  }
  return found;
}
