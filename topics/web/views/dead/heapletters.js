/* The dead letters of a heap: how they are chosen, read, taken back and deleted. */

import { api, at } from "../../kit/api.js";
import { confirmed } from "../../kit/confirmed.js";

const PAGE = 100;
const STEP = 100;

export class HeapLetters {
  constructor(source) {
    this.source = source;
    this.path = at`/v1/heaps/${source}/dlq`;
  }

  /* What they can be chosen by. */
  filters = [
    { name: "reason", label: "Reason", hint: "the whole text, or its beginning and a *" },
    { name: "died_from", label: "Died from", type: "datetime-local" },
    { name: "died_before", label: "Died before", type: "datetime-local" },
    { name: "priority_min", label: "Priority from" },
    { name: "priority_max", label: "Priority to" },
  ];

  hasPriorities = true;

  async page(filter, cursor, signal) {
    const query = { limit: PAGE, page_token: cursor, ...chosen(filter) };
    const { items, next_page_token: next } = await api.get(this.path, { query, signal });
    return { letters: items.map(letterOf), next };
  }

  async count(filter, verb, signal) {
    const { count } = await api.post(`${this.path}/${verb}`, { ...chosen(filter), dry_run: true }, { signal });
    return count;
  }

  /* Of those that were chosen one by one: what each step did. */
  async *some(verb, letters, signal) {
    for (let from = 0; from < letters.length; from += STEP) {
      const ids = letters.slice(from, from + STEP).map((letter) => letter.key);
      yield await this.step(verb, { message_ids: ids }, signal);
    }
  }

  /* Of all that a filter means and that were there when it began. What cannot go is met by each step again, so that the
   * last one, which finds nothing else, says how many those are. */
  async *all(verb, filter, signal) {
    const wanted = { ...chosen(filter), limit: STEP };
    wanted.died_before ??= new Date().toISOString();
    for (;;) {
      const { done, skipped } = await this.step(verb, wanted, signal);
      yield { done, skipped: done === 0 ? skipped : 0 };
      if (done === 0) return;
    }
  }

  async step(verb, body, signal) {
    const path = `${this.path}/${verb}`;
    const call = (query) => api.post(path, body, { query, signal });
    const { count, skipped } = await (verb === "delete" ? confirmed(call) : call({}));
    return { done: count, skipped };
  }
}

function chosen(filter) {
  const given = Object.entries(filter).filter(([, value]) => value !== "");
  return Object.fromEntries(given.map(([name, value]) => [name, name.startsWith("died_") ? new Date(value).toISOString() : value]));
}

function letterOf(item) {
  return {
    key: item.message_id,
    name: item.message_id,
    diedTs: Date.parse(item.dead_time),
    bornTs: Date.parse(item.enqueued_time),
    reason: item.reason,
    attempts: item.attempts,
    priority: item.priority,
    place: `${item.dlq_topic}, partition ${item.dlq_partition_id}, seq ${item.dlq_seq}`,
    history: item.history,
    message: item,
  };
}
