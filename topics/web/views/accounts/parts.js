/* What the views of keys, users and one's own account share. */

import { h } from "../../kit/dom.js";
import { empty } from "../../kit/empty.js";
import { ago, when } from "../../kit/format.js";

/* A time as how long ago it was, with the time itself for whoever points at it. */
export function timeCell(ts) {
  if (!ts) return h("span", { class: "faint" }, "never");
  return h("time", { datetime: new Date(ts).toISOString(), title: when(ts) }, ago(ts));
}

/* The head of a column of buttons: to be heard, not to be seen. */
export function actionsHead() {
  return h("span", { class: "unseen" }, "Actions");
}

/* That what is made here keeps nobody out, where that is so. */
export function offNotice(me) {
  if (me.authentication) return [];
  return [
    h(
      "p",
      { class: "notice warning", role: "note" },
      "Authentication is off: whoever reaches this server may do everything. What you make here counts once it is started with ",
      h("code", null, "TOPICS_AUTH=1"),
      ".",
    ),
  ];
}

/* Where there is nobody who could have an account. */
export function nobody() {
  return empty({
    name: "account",
    title: "Nobody is signed in",
    text: "Authentication is off, so that this server asks nobody who they are. To have people sign in, start it with:",
    commands: ["TOPICS_AUTH=1 topics serve"],
  });
}
