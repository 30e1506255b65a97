/* Icons, drawn in strokes on a field of 20 by 20. They stand beside words, so a screen reader passes them by. */

import { svg } from "./dom.js";

const DRAWN = {
  // Views.
  overview: "M3 16V11M8 16V5M13 16v-7M18 16V3",
  topics: "M4 5h12M4 10h12M4 15h8",
  routers: "M5 5h.01M15 10h.01M5 15h.01M6.5 5.5l7 4M6.5 14.5l7-4M5 3.5a1.5 1.5 0 1 0 0 3a1.5 1.5 0 1 0 0-3M5 13.5a1.5 1.5 0 1 0 0 3a1.5 1.5 0 1 0 0-3M15 8.5a1.5 1.5 0 1 0 0 3a1.5 1.5 0 1 0 0-3",
  queues: "M3 6h4v8H3zM8.5 6h4v8h-4zM14 6h3v8h-3z",
  heaps: "M10 3.5v0M10 3L6 9M10 3l4 6M6 9l-3 6M6 9l3 6M14 9l3 6M14 9l-2 4",
  dead: "M4 4h12v12H4zM7.5 7.5l5 5M12.5 7.5l-5 5",
  groups: "M7 9a2.5 2.5 0 1 0 0-5a2.5 2.5 0 1 0 0 5M2.5 16c0-3 2-4.5 4.5-4.5s4.5 1.5 4.5 4.5M13 9a2 2 0 1 0 0-4M14 11.7c2.2.4 3.5 1.9 3.5 4.3",
  sql: "M3 4h14v12H3zM6 8l2.5 2L6 12M10.5 12.5H14",
  pipelines: "M3 6h5a2 2 0 0 1 2 2v4a2 2 0 0 0 2 2h5M3 14h3M14 6h3M14.5 11.5L17 14l-2.5 2.5",
  keys: "M7 13a3.5 3.5 0 1 0 0-7a3.5 3.5 0 1 0 0 7M10.5 9.5H17v3M14 9.5v2.5",
  users: "M10 10a3 3 0 1 0 0-6a3 3 0 1 0 0 6M4 17c0-3.5 2.5-5 6-5s6 1.5 6 5",
  audit: "M5 3h7l3 3v11H5zM8 9h4M8 12h4",
  settings: "M3 6h8M15 6h2M3 14h2M9 14h8M13 4v4M7 12v4",
  account: "M10 10a3 3 0 1 0 0-6a3 3 0 1 0 0 6M4 17c0-3.5 2.5-5 6-5s6 1.5 6 5",
  // Actions and states.
  again: "M15.5 7A6 6 0 1 0 16 11M16 4v3.5h-3.5",
  alert: "M10 3.5L17.5 16h-15zM10 8v4M10 14v.2",
  ok: "M4 10.5l4 4l8-9",
  info: "M10 3a7 7 0 1 0 0 14a7 7 0 1 0 0-14M10 9v4.5M10 6.5v.2",
  close: "M5 5l10 10M15 5L5 15",
  copy: "M7 7h9v9H7zM4 13V4h9",
  delete: "M4 6h12M8 6V4h4v2M6 6l.7 10h6.6L14 6",
  down: "M5 8l5 5l5-5",
  edit: "M4 16l.7-3L13 4.7L15.3 7L7 15.3z",
  empty: "M3 11l2.5-6h9l2.5 6v5H3zM3 11h4l1 2h4l1-2h4",
  filter: "M3 5h14l-5.5 6v5l-3-1.5V11z",
  left: "M12 5l-5 5l5 5",
  link: "M8 12l4-4M9 6l2-2a3 3 0 0 1 5 4l-2.5 2M11 14l-2 2a3 3 0 0 1-5-4l2.5-2",
  menu: "M3 5h14M3 10h14M3 15h14",
  moon: "M15.5 12A6.5 6.5 0 0 1 8 4.5a6.5 6.5 0 1 0 7.5 7.5z",
  out: "M8 4H4v12h4M9 10h8M14 7l3 3l-3 3",
  pause: "M7 5v10M13 5v10",
  plus: "M10 4v12M4 10h12",
  play: "M6 4.5l9 5.5l-9 5.5z",
  right: "M8 5l5 5l-5 5",
  screen: "M3 4h14v9H3zM7 16.5h6",
  search: "M9 14.5a5.5 5.5 0 1 0 0-11a5.5 5.5 0 1 0 0 11M13 13l4 4",
  sort: "M7 8l3-3l3 3M7 12l3 3l3-3",
  stop: "M6 6h8v8H6z",
  sun: "M10 13.5a3.5 3.5 0 1 0 0-7a3.5 3.5 0 1 0 0 7M10 2v1.5M10 16.5V18M2 10h1.5M16.5 10H18M4.3 4.3l1.1 1.1M14.6 14.6l1.1 1.1M4.3 15.7l1.1-1.1M14.6 5.4l1.1-1.1",
};

export function icon(name) {
  return svg(
    "svg",
    { class: `icon icon-${name}`, viewBox: "0 0 20 20", width: 18, height: 18, "aria-hidden": "true", focusable: "false" },
    svg("path", { d: DRAWN[name] ?? DRAWN.info }),
  );
}

/* The mark: a log whose lines lead to one point. */
export function logo() {
  return svg(
    "svg",
    { class: "logo", viewBox: "0 0 32 32", width: 28, height: 28, "aria-hidden": "true", focusable: "false" },
    svg("rect", { class: "logo-ground", x: 1, y: 1, width: 30, height: 30, rx: 8 }),
    svg("path", { class: "logo-lines", d: "M8 10h9M8 16h12M8 22h9M17 10l5 6l-5 6" }),
    svg("circle", { class: "logo-point", cx: 24, cy: 16, r: 2 }),
  );
}
