/* Waiting for the next attempt, when the server has asked for it. */

import { h, setText } from "../../kit/dom.js";
import { duration } from "../../kit/format.js";

const STEP_MS = 250;

/* Count down in `place`, where `error` is what the server said; done when the time is over, or with the signal. */
export function countDown(place, error, signal) {
  const untilMs = performance.now() + error.retryAfterMs;
  const left = h("strong", { class: "count-down" });
  const said = h("p", { class: "notice warning", role: "alert" }, error.message);
  place.replaceChildren(said, h("p", { role: "timer" }, "Next attempt in ", left));
  return new Promise((resolve) => {
    const finish = () => {
      clearInterval(timer);
      place.replaceChildren();
      resolve();
    };
    const show = () => {
      const leftMs = untilMs - performance.now();
      if (leftMs <= 0) finish();
      else setText(left, duration(Math.ceil(leftMs / 1000) * 1000));
    };
    const timer = setInterval(show, STEP_MS);
    signal.addEventListener("abort", finish, { once: true });
    show();
  });
}
