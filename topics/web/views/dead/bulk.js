/* Replaying or deleting many dead letters: asked for in words with the count, done in steps with a bar, and stopped when
 * somebody says so. What was done by then stays done. */

import { confirm } from "../../kit/dialog.js";
import { h, replace } from "../../kit/dom.js";
import { count, counted } from "../../kit/format.js";
import { progress } from "../../kit/progress.js";

const WORDS = {
  replay: { title: "Replay", label: "Replaying", done: "replayed" },
  delete: { title: "Delete", label: "Deleting", done: "deleted" },
};

/* Whether somebody wants it. Deleting asks for the name of where they come from. */
export function ask(verb, source, number) {
  const letters = counted(number, "dead letter");
  if (verb === "replay") {
    return confirm({
      title: `Replay ${letters}?`,
      body: `${number === 1 ? "It goes" : "They go"} back to ${source}, with no attempt counted, and will be handed out again.`,
      action: "Replay",
    });
  }
  return confirm({
    title: `Delete ${letters}?`,
    body: `${number === 1 ? "It is" : "They are"} deleted for good. Nobody will get ${number === 1 ? "it" : "them"}, and this cannot be undone.`,
    word: source,
    action: "Delete",
    danger: true,
  });
}

/* Do it: `begin()` gives the steps, of which none is broken off. `place` is where the bar stands. */
export async function carryOut(verb, total, place, leaving, begin) {
  const words = WORDS[verb];
  const bar = progress({ label: words.label, total });
  replace(place, bar);
  let done = 0;
  let skipped = 0;
  let problem = "";
  try {
    for await (const step of begin()) {
      done += step.done;
      skipped += step.skipped;
      bar.to(done);
      if (bar.stopped) break;
    }
  } catch (error) {
    if (leaving.aborted) return;
    problem = error.message;
  }
  bar.end(summary(words, done, skipped, bar.stopped, problem));
  if (problem) place.append(h("p", { class: "problem", role: "alert" }, problem));
}

function summary(words, done, skipped, stopped, problem) {
  const parts = [`${counted(done, "dead letter")} ${words.done}`];
  if (skipped > 0) parts.push(`${count(skipped)} could not go: somebody has them, or their place is gone or full`);
  if (stopped) parts.push("stopped by you");
  else if (problem) parts.push("stopped by an error");
  return `${parts.join("; ")}.`;
}
