/* The small parts that every view is made of, and the states it can be in. */

import { h, replace, setText, uniqueId } from "./dom.js";
import { icon } from "./icons.js";

/* Where data will be. */
export function loading(label = "Loading") {
  const bar = h("span", { class: "loading-bar" });
  return h("div", { class: "loading", role: "status" }, bar, h("span", null, `${label}…`));
}

/* What the server said, word for word, and a way to try again. */
export function failed(error, retry = null) {
  const scopes = error.status === 403 ? [error.detail?.scope ?? []].flat() : [];
  const missing = scopes.length > 0 && h("p", null, `This takes the scope ${scopes.join(" and ")}.`);
  const again = retry && h("button", { type: "button", on: { click: () => retry() } }, icon("again"), "Try again");
  const title = error.status === 403 ? "You may not see this" : error.status === 404 ? "Not there" : "That did not work";
  return h(
    "div",
    { class: "failed", role: "alert" },
    icon("alert"),
    h("div", null, h("h2", null, title), h("p", { class: "failed-text" }, error.message), missing, again),
  );
}

/* A word in a frame. Kinds: ok, warning, bad, info, quiet. */
export function badge(text, kind = "quiet") {
  return h("span", { class: `badge ${kind}` }, text);
}

/* A figure with its name. Gives an element with `update(value, hint)`. */
export function stat(label, value, hint = "") {
  const figure = h("dd", { class: "stat-value" }, value);
  const small = h("dd", { class: "stat-hint" }, hint);
  const element = h("dl", { class: "stat" }, h("dt", null, label), figure, small);
  return Object.assign(element, {
    update(next, nextHint) {
      if (next instanceof Node) replace(figure, next);
      else setText(figure, next);
      if (nextHint !== undefined) setText(small, nextHint);
    },
  });
}

/* Figures side by side. */
export function stats(...children) {
  return h("div", { class: "stats" }, children);
}

/* A part of a view under a heading. */
export function section(title, ...children) {
  const id = uniqueId("section");
  return h("section", { class: "section", "aria-labelledby": id }, h("h2", { id }, title), children);
}

/* The head of a view: its name, what it is about, and actions at the right. */
export function heading(title, { about = "", actions = [] } = {}) {
  const text = h("div", null, h("h1", null, title), about && h("p", { class: "about" }, about));
  return h("header", { class: "heading" }, text, h("div", { class: "heading-actions" }, actions));
}

/* Fields and buttons in a row. */
export function toolbar(...children) {
  return h("div", { class: "toolbar" }, children);
}

/* A button. Kinds: plain, primary, danger, quiet. */
export function button(label, click, { kind = "plain", name = null, ...attributes } = {}) {
  return h("button", { type: "button", class: kind, on: { click }, ...attributes }, name && icon(name), label);
}

/* A button that is an icon, with words for who cannot see it. */
export function iconButton(name, label, click) {
  return h("button", { type: "button", class: "quiet icon-only", "aria-label": label, title: label, on: { click } }, icon(name));
}

/* One of several panels at a time: `[{ name, label, content }]`, where `content` is a node, or a function that makes it
 * when the tab is first opened. Left and right move between the tabs. `onChange(name)` is told. Gives an element with
 * `open(name)`. */
export function tabs(items, { open: first = items[0].name, label = "Parts", onChange = null } = {}) {
  const made = new Map();
  const panel = h("div", { class: "tab-panel", role: "tabpanel", tabindex: "0", id: uniqueId("panel") });
  const heads = items.map((item) =>
    h(
      "button",
      {
        type: "button",
        role: "tab",
        class: "tab",
        id: uniqueId("tab"),
        "aria-controls": panel.id,
        on: { click: () => open(item.name), keydown: (event) => move(event, item) },
      },
      item.label,
    ),
  );

  function open(name) {
    const at = Math.max(0, items.findIndex((item) => item.name === name));
    const item = items[at];
    heads.forEach((head, index) => {
      head.setAttribute("aria-selected", String(index === at));
      head.setAttribute("tabindex", index === at ? "0" : "-1");
    });
    if (!made.has(item.name)) made.set(item.name, typeof item.content === "function" ? item.content() : item.content);
    panel.setAttribute("aria-labelledby", heads[at].id);
    replace(panel, made.get(item.name));
    onChange?.(item.name);
  }

  function move(event, item) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = (items.indexOf(item) + step + items.length) % items.length;
    open(items[next].name);
    heads[next].focus();
  }

  const list = h("div", { class: "tab-list", role: "tablist", "aria-label": label }, heads);
  const element = h("div", { class: "tabs" }, list, panel);
  open(first);
  return Object.assign(element, { open });
}
