/* The log of a pipeline as its runner sends it, followed while somebody looks. */

import { api, at } from "../../kit/api.js";
import { h, replace } from "../../kit/dom.js";
import { clock, when } from "../../kit/format.js";
import { badge, section, toolbar } from "../../kit/state.js";

const LINES = 1000;
const KINDS = { debug: "quiet", info: "info", warning: "warning", error: "bad" };
const LEVELS = Object.keys(KINDS);

/* Gives an element with `load(signal)`. */
export function logLines(name) {
  let lines = [];
  let drawn = null;
  const follow = h("input", { type: "checkbox", checked: true, on: { change: () => toEnd() } });
  const least = h("select", { "aria-label": "Least level", value: "debug", on: { change: () => draw(true) } }, LEVELS.map((level) => h("option", { value: level }, `${level} and above`)));
  const list = h("div", { class: "log", role: "log", tabindex: "0", "aria-label": "Log" });
  // It is drawn before anybody sees it: only then is there an end to be at.
  new ResizeObserver(() => toEnd()).observe(list);
  const element = section("Log", toolbar(least, h("label", { class: "check" }, follow, "Follow")), list);

  function draw(afresh) {
    const last = lines.at(-1);
    const mark = last ? `${lines.length}/${last.ts}/${last.message}` : "";
    if (!afresh && mark === drawn) return;
    drawn = mark;
    const shown = lines.filter(({ level }) => LEVELS.indexOf(level) >= LEVELS.indexOf(least.value));
    if (shown.length === 0) replace(list, h("p", { class: "none" }, "No lines. They come with the reports of a runner, and are gone with a restart."));
    else replace(list, shown.map(line));
    toEnd();
  }

  function toEnd() {
    if (follow.checked) list.scrollTop = list.scrollHeight;
  }

  async function load(signal) {
    const { logs } = await api.get(at`/v0/pipelines/${name}/logs`, { query: { limit: LINES }, signal });
    lines = logs;
    draw(false);
  }

  return Object.assign(element, { load });
}

function line({ ts, level, message }) {
  return h("div", { class: "log-line" }, h("time", { title: when(ts) }, clock(ts)), badge(level, KINDS[level]), h("span", { class: "mono" }, message));
}
