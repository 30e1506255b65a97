/* Work in several steps, with a bar and a way to stop it.
 *
 *   const bar = progress({ label: "Deleting", total: 300 });
 *   for (const part of parts) { if (bar.stopped) break; await …; bar.to(done); }
 *   bar.end("300 deleted.");
 *
 * `bar.signal` is aborted when it is stopped, for requests that are under way. */

import { h, setText } from "./dom.js";
import { count } from "./format.js";

export function progress({ label, total }) {
  const stopper = new AbortController();
  const bar = h("progress", { max: Math.max(1, total), value: 0, "aria-label": label });
  const text = h("span", { class: "progress-text" }, `0 of ${count(total)}`);
  const stop = h("button", { type: "button", on: { click: () => halt() } }, "Stop");
  const element = h("div", { class: "progress", role: "status" }, h("strong", null, label), bar, text, stop);

  function halt() {
    stopper.abort();
    stop.disabled = true;
  }

  const controls = {
    signal: stopper.signal,
    to(done) {
      bar.value = done;
      setText(text, `${count(done)} of ${count(total)}`);
    },
    end(said) {
      setText(text, said);
      stop.remove();
    },
  };
  Object.defineProperty(element, "stopped", { get: () => stopper.signal.aborted });
  return Object.assign(element, controls);
}
