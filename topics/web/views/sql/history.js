/* What was run before, kept in this browser. */

import { dialog } from "../../kit/dialog.js";
import { h } from "../../kit/dom.js";
import { ago } from "../../kit/format.js";
import { button } from "../../kit/state.js";

const KEPT_MAX = 50;
const CHARS_MAX = 20_000;
const HISTORY = "topics.sql.history";
const DRAFT = "topics.sql.draft";

export function remember(text) {
  const others = past().filter((each) => each.text !== text);
  keep(HISTORY, JSON.stringify([{ text: text.slice(0, CHARS_MAX), ts: Date.now() }, ...others].slice(0, KEPT_MAX)));
}

export function draft() {
  return localStorage.getItem(DRAFT) ?? "";
}

export function keepDraft(text) {
  keep(DRAFT, text.slice(0, CHARS_MAX));
}

/* Gives the text that was chosen, or null. */
export function chooseFromHistory() {
  const kept = past();
  if (kept.length === 0) return dialog({ title: "History", body: "Nothing was run in this browser yet.", actions: [{ label: "Close" }] });
  return dialog({
    title: "History",
    wide: true,
    body: (close) => {
      const forget = () => {
        localStorage.removeItem(HISTORY);
        close();
      };
      const lines = kept.map(({ text, ts }) =>
        h("li", null, h("button", { type: "button", class: "past", on: { click: () => close(text) } }, h("code", null, text), h("small", null, ago(ts)))),
      );
      return h("div", null, h("ul", { class: "history" }, lines), h("div", { class: "dialog-actions" }, button("Forget all", forget, { kind: "danger" })));
    },
  });
}

function past() {
  try {
    const kept = JSON.parse(localStorage.getItem(HISTORY) ?? "[]");
    return Array.isArray(kept) ? kept.filter((each) => typeof each?.text === "string") : [];
  } catch {
    return [];
  }
}

function keep(name, text) {
  try {
    localStorage.setItem(name, text);
  } catch {
    // A browser that keeps nothing still runs statements.
  }
}
