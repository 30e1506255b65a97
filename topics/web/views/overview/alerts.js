/* Alerts: what is wrong, since when, what to do, and where. */

import { h, replace } from "../../kit/dom.js";
import { when } from "../../kit/format.js";
import { icon } from "../../kit/icons.js";

/* Gives an element with `update(alerts)`. */
export function alertList() {
  const element = h("div", { class: "alerts", role: "region", "aria-label": "Alerts", "aria-live": "polite" });
  let shown = "";

  function update(alerts) {
    // Told to a screen reader only when something is new.
    const wanted = JSON.stringify(alerts);
    if (wanted === shown) return;
    shown = wanted;
    replace(element, alerts.length === 0 ? allWell() : alerts.map(oneAlert));
  }

  return Object.assign(element, { update });
}

function allWell() {
  return h("p", { class: "all-well" }, icon("ok"), "All is well: nothing needs looking at.");
}

function oneAlert(alert) {
  return h(
    "article",
    { class: `alert ${alert.severity}` },
    icon("alert"),
    h(
      "div",
      { class: "alert-text" },
      h("h2", null, alert.title),
      h("p", null, alert.text),
      h("p", { class: "alert-todo" }, withCode(alert.todo)),
      h("p", { class: "alert-foot" }, h("a", { href: alert.link }, "Look at it"), ` since ${when(alert.since_ts)}`),
    ),
  );
}

/* Text in which `what stands so` is a command. */
function withCode(text) {
  return text.split("`").map((part, index) => (index % 2 === 1 ? h("code", null, part) : part));
}
