/* The jobs of a queue in all its partitions. A topic's state is that of one partition; those of the others are asked for. */

import { api, at } from "../../kit/api.js";

const COUNTED = ["ready", "in_flight", "delayed", "dead_lettered"];
/* Beyond, only the first ones are counted, and it is said so. */
export const PARTITIONS_SUMMED = 64;

export async function wholeQueue(first, signal) {
  const partitions = first.partitions ?? 1;
  const others = Array.from({ length: Math.min(partitions, PARTITIONS_SUMMED) - 1 }, (_, at) => at + 1);
  const asked = others.map((partition) => api.get(at`/v0/topics/${first.topic}`, { query: { partition, touch: false }, signal }));
  const states = [first, ...(await Promise.all(asked))];
  const sums = Object.fromEntries(COUNTED.map((name) => [name, states.reduce((sum, { queue }) => sum + queue[name], 0)]));
  const problem = states.map(({ queue }) => queue.dead_letter_error).find(Boolean) ?? null;
  return { topic: first.topic, partitions, records_per_s: first.records_per_s, last_write_ts: first.last_write_ts, ...sums, problem };
}
