/* Emptying and deleting a heap: both ask for its name, and say how many messages go. */

import { api, at } from "../../kit/api.js";
import { confirm } from "../../kit/dialog.js";
import { confirmed } from "../../kit/confirmed.js";
import { count, counted } from "../../kit/format.js";
import { toast } from "../../kit/toast.js";

/* Whether it was emptied. */
export async function purgeHeap(topic) {
  const { stats } = await api.get(at`/v1/heaps/${topic}`);
  const leased = stats.inflight_messages ? ` ${count(stats.inflight_messages)} of them are leased: their consumers can not ack them any more.` : "";
  const sure = await confirm({
    title: `Empty ${topic}?`,
    body: `All ${counted(stats.total_messages, "message")} of it are deleted.${leased} Dead letters stay. This cannot be undone.`,
    word: topic,
    action: "Empty it",
    danger: true,
  });
  if (!sure) return false;
  return tell(async () => {
    const { purged } = await confirmed((query) => api.post(at`/v1/heaps/${topic}/purge`, undefined, { query }));
    return `${counted(purged, "message")} deleted.`;
  });
}

/* Whether it was deleted. */
export async function deleteHeap(topic) {
  const { stats, dlq_policy: policy } = await api.get(at`/v1/heaps/${topic}`);
  const letters = policy.topic ? ` Dead letters stay in ${policy.topic}.` : "";
  const sure = await confirm({
    title: `Delete ${topic}?`,
    body: `The heap goes, with ${counted(stats.total_messages, "message")} in it.${letters} This cannot be undone.`,
    word: topic,
    action: "Delete it",
    danger: true,
  });
  if (!sure) return false;
  return tell(async () => {
    await confirmed((query) => api.remove(at`/v1/heaps/${topic}`, undefined, { query }));
    return `Heap ${topic} is gone.`;
  });
}

async function tell(work) {
  try {
    toast(await work());
    return true;
  } catch (error) {
    toast(error.message, { kind: "bad" });
    return false;
  }
}
