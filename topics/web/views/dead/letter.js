/* One dead letter: why it died, how its deliveries failed, and what was in it. */

import { dialog } from "../../kit/dialog.js";
import { h } from "../../kit/dom.js";
import { facts } from "../../kit/facts.js";
import { count, when } from "../../kit/format.js";
import { jsonView } from "../../kit/json.js";
import { payloadView } from "../heap/payload.js";

export function showLetter(letter) {
  const { meta } = letter.message;
  return dialog({
    title: "Dead letter",
    wide: true,
    body: h(
      "div",
      null,
      facts([
        ["What", h("code", null, letter.name)],
        ["Reason", letter.reason || "–"],
        ["Died", when(letter.diedTs)],
        letter.bornTs && ["Enqueued", when(letter.bornTs)],
        ["Deliveries", count(letter.attempts)],
        letter.priority !== undefined && ["Priority", String(letter.priority)],
        letter.tag && ["Tag", letter.tag],
        ["Where", letter.place],
      ]),
      letter.history.length > 0 && [h("h3", null, "Last failures"), h("ol", { class: "failures" }, letter.history.map(failure))],
      h("h3", null, "Payload"),
      payloadView(letter.message),
      meta && Object.keys(meta).length > 0 && [h("h3", null, "Meta"), jsonView(meta)],
    ),
    actions: [{ label: "Close" }],
  });
}

function failure({ at, reason, consumer }) {
  return h("li", null, `${when(Date.parse(at))}: ${reason || "no reason was given"}${consumer ? `, by ${consumer}` : ""}`);
}
