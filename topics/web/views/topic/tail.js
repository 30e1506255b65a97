/* A topic's records as they come. The newest is on top; paused, they are counted and shown when it goes on. */

import { h, setText } from "../../kit/dom.js";
import { count } from "../../kit/format.js";
import { follow } from "../../kit/live.js";
import { badge, button, toolbar } from "../../kit/state.js";
import { gapLine, recordLine } from "./record.js";

const KEPT = 200;

export function tail({ topic, partition, partitions, signal }) {
  const list = h("div", { class: "records tail", role: "log", "aria-live": "off", "aria-label": "Records as they come" });
  const state = h("span", { class: "tail-state", role: "status" }, badge("connecting", "quiet"));
  const told = h("span", { class: "found" }, "Waiting for the next record…");
  const pause = button("Pause", () => turn(), { name: "pause", "aria-pressed": false });
  /* What came and is not drawn yet: at most as much as is kept. */
  let waiting = [];
  let came = 0;
  let held = 0;
  let isPaused = false;
  let frame = 0;

  function take(line) {
    waiting.push(line);
    if (waiting.length > KEPT) waiting.shift();
    if (isPaused) {
      held += 1;
      setText(told, `${count(held)} more came`);
    } else {
      frame ||= requestAnimationFrame(draw);
    }
  }

  function draw() {
    frame = 0;
    const lines = waiting.map((make) => make());
    waiting = [];
    list.prepend(...lines.reverse());
    while (list.childElementCount > KEPT) list.lastChild.remove();
    if (came > 0) setText(told, `${count(came)} came since this was opened`);
  }

  function turn() {
    isPaused = !isPaused;
    pause.setAttribute("aria-pressed", String(isPaused));
    setText(pause.lastChild, isPaused ? "Go on" : "Pause");
    if (isPaused) return;
    held = 0;
    draw();
  }

  const say = (text, kind) => {
    if (state.textContent !== text) state.replaceChildren(badge(text, kind));
  };
  const place = partitions > 1 ? `${topic}#${partition}` : topic;
  follow({ [place]: { tail: true } }, signal, {
    record: (record) => {
      came += 1;
      say("live", "ok");
      take(() => recordLine(record));
    },
    tombstone: (gap) => take(() => gapLine(gap)),
    caughtUp: () => say("live", "ok"),
    deleted: () => say("the topic is gone", "bad"),
    dropped: () => say("the line broke, opening it again", "warning"),
    refused: (error) => say(error.message, "bad"),
  });
  signal.addEventListener("abort", () => cancelAnimationFrame(frame));
  return h("div", null, toolbar(state, pause, told), list);
}
