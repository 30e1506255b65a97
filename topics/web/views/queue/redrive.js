/* Bringing a queue's dead letters back: which, how fast, counted first, with a bar while they go. */

import { api, at } from "../../kit/api.js";
import { confirm } from "../../kit/dialog.js";
import { h, replace } from "../../kit/dom.js";
import { empty } from "../../kit/empty.js";
import { form } from "../../kit/form.js";
import { count, counted } from "../../kit/format.js";
import { progress } from "../../kit/progress.js";
import { button } from "../../kit/state.js";
import { matchOf, TAG_HINT } from "../topic/match.js";

const STEP = 1000;

export function redriving({ topic, deadLetter, me, signal, changed }) {
  if (deadLetter === null) {
    return empty({
      name: "dead",
      title: "Its jobs never die",
      text: "A job that fails is tried for ever. With these, one that fails too often goes to a topic of its own:",
      commands: [`topics topic config ${topic} --max-deliveries 5 --dead-letter ${topic}.dead`],
    });
  }
  if (!me.may("write")) return h("p", { class: "none" }, "Bringing them back takes the scope write, which you do not have.");
  const preview = h("div", { class: "preview", role: "status" });
  const asked = form({
    fields: [
      { name: "tag", label: "Tag", kind: "text", hint: TAG_HINT },
      { name: "reason", label: "Reason", kind: "text", hint: "Why it died, such as max_deliveries. Empty is any." },
      { name: "rate", label: "Jobs a second at most", kind: "number", min: 1, hint: "Empty is as fast as it goes." },
      { name: "limit", label: "Jobs at most", kind: "number", min: 1, hint: "Empty is all." },
    ],
    submit: "Bring them back…",
    onSubmit: async (values) => {
      const { moved: would } = await sweep(values, { dryRun: true });
      say(would);
      if (would === 0) return;
      const agreed = await confirm({
        title: `Bring ${counted(would, "dead letter")} back?`,
        body: `They leave ${deadLetter}, and are jobs of ${topic} again, as if they had never been tried.`,
        action: "Bring them back",
      });
      if (agreed) await go(values, would);
    },
  });
  asked.querySelector(".form-actions").prepend(
    button("Count", async () => {
      try {
        say((await sweep(asked.values(), { dryRun: true })).moved);
      } catch (error) {
        if (error.detail) asked.fail(error);
      }
    }),
  );

  const say = (would) => replace(preview, would === 0 ? "No dead letter fits." : `${counted(would, "dead letter")} would come back.`);

  async function go(values, total) {
    const bar = progress({ label: "Bringing them back", total });
    replace(preview, bar);
    const stop = AbortSignal.any([bar.signal, signal]);
    try {
      const { moved, skipped } = await sweep(values, { bar, stop });
      bar.end(`${count(moved)} are back${skipped > 0 ? `; ${count(skipped)} stay: somebody has them, or there is no room` : ""}${bar.stopped ? "; stopped" : ""}.`);
    } finally {
      changed();
    }
  }

  /* Go through all partitions of the dead-letter topic, in requests that take about a second each. */
  async function sweep({ tag, reason, rate, limit }, { dryRun = false, bar = null, stop = signal }) {
    const { partitions = 1 } = await api.get(at`/v0/topics/${deadLetter}`, { query: { touch: false }, signal });
    const sum = { moved: 0, skipped: 0 };
    for (let partition = 0; partition < partitions; partition += 1) {
      const place = { from_seq: 0 };
      let done = false;
      while (!done && !stop.aborted && (limit === null || sum.moved < limit)) {
        const most = Math.min(rate ?? STEP, limit === null ? Infinity : limit - sum.moved);
        const body = { source: topic, partition, dry_run: dryRun, limit: Math.max(1, most), ...place };
        const match = matchOf(tag);
        if (match) body.match = match;
        if (reason) body.reason = reason;
        if (rate !== null && !dryRun) body.rate_per_second = rate;
        const step = await api.post(at`/v0/topics/${deadLetter}/redrive`, body);
        sum.moved += step.moved;
        sum.skipped += step.skipped;
        // What dies meanwhile is for another time.
        place.before_seq ??= step.head_seq + 1;
        place.from_seq = step.next_from_seq;
        done = step.done;
        bar?.to(sum.moved);
      }
    }
    return sum;
  }

  return h("div", null, h("p", null, "Its dead letters are in ", h("a", { href: `/dead/${encodeURIComponent(deadLetter)}` }, deadLetter), "."), asked, preview);
}
