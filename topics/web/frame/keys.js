/* Keys that work everywhere: `/` and Ctrl+K for the palette, `g` and a letter for a view, `?` for what there is. */

import { dialog } from "../kit/dialog.js";
import { h } from "../kit/dom.js";
import { ROUTES } from "../routes.js";

const G_MS = 1500;
const TYPING = "input, textarea, select, [contenteditable]";

export function bindKeys({ go, palette }) {
  let gUntil = 0;

  function pressed(event) {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      palette.open();
      return;
    }
    const typing = event.target.closest?.(TYPING) || document.querySelector("dialog[open]");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const afterG = performance.now() < gUntil;
    gUntil = 0;
    if (afterG) {
      const route = ROUTES.find(({ key }) => key === event.key);
      if (route) {
        event.preventDefault();
        go(route.path);
      }
    } else if (event.key === "g") {
      gUntil = performance.now() + G_MS;
    } else if (event.key === "/") {
      event.preventDefault();
      palette.open();
    } else if (event.key === "?") {
      event.preventDefault();
      showKeys();
    }
  }

  document.addEventListener("keydown", pressed);
}

/* The list of keys. */
export function showKeys() {
  const views = ROUTES.filter(({ key }) => key);
  const line = (keys, what) => {
    const shown = keys.map((key) => h("kbd", null, key));
    return h("div", { class: "keys-line" }, h("dt", null, shown), h("dd", null, what));
  };
  return dialog({
    title: "Keys",
    body: h(
      "dl",
      { class: "keys" },
      line(["Ctrl", "K"], "search: views, topics, actions"),
      line(["/"], "the same"),
      line(["?"], "this list"),
      line(["Esc"], "close what is open"),
      views.map(({ key, label }) => line(["g", key], label)),
      line(["↑", "↓", "PgUp", "PgDn", "Home", "End"], "move in a list"),
      line(["←", "→"], "move in a chart or between tabs"),
    ),
  });
}
