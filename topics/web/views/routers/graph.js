/* Routers as a net: topics are boxes, routers the lines between them, with what each is behind by. A line that is stalled is
 * red, one that is behind is amber. Where it leads back it goes below. */

import { h, replace, svg } from "../../kit/dom.js";
import { count, duration } from "../../kit/format.js";
import { topicPath } from "../topic/links.js";
import { BOX, layout } from "./layout.js";
import { viewport } from "./viewport.js";

const NAME_CHARS = 24;
const BACK_DROP = 46;
const BACK_BEND = 50;

/* `go(path)` opens a topic. Gives an element with `update(routers)`. */
export function graph(go) {
  const tip = svg("marker", { id: "router-tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, svg("path", { class: "net-tip", d: "M0 0L8 4L0 8z" }));
  const lines = svg("g", { class: "net-lines", "aria-hidden": "true" });
  const boxes = svg("g", { class: "net-boxes" });
  const drawing = svg("svg", { class: "net", width: "100%", height: "100%" }, svg("defs", null, tip), lines, boxes);
  const view = viewport(drawing, "Net of routers");
  let drawn = "";

  function update(routers) {
    const { places, backward, width, height } = layout(routers);
    replace(lines, routers.map((router) => line(router, places, backward.has(router) ? height + BACK_DROP / 2 : null)));
    const shape = [...places.keys()].join("\n") + routers.map(({ router }) => router).join("\n");
    if (shape === drawn) return;
    // Who has the focus keeps it, and who looks at a part goes on doing so, while the net is the same.
    drawn = shape;
    replace(boxes, [...places].map(([name, place]) => box(name, place, go)));
    view.fit(width, height + (backward.size > 0 ? BACK_DROP : 0));
  }

  return Object.assign(h("figure", { class: "net-figure", "aria-label": "Routers as a net; the table below has the same" }, view), { update });
}

function box(name, { x, y }, go) {
  const shown = name.length > NAME_CHARS ? `${name.slice(0, NAME_CHARS - 1)}…` : name;
  const open = () => go(topicPath(name));
  const pressed = (event) => {
    if (event.key !== "Enter") return;
    event.stopPropagation();
    open();
  };
  return svg(
    "g",
    { class: "net-box", role: "link", tabindex: "0", "aria-label": `Topic ${name}`, transform: `translate(${x} ${y})`, on: { click: open, keydown: pressed } },
    svg("title", null, name),
    svg("rect", { width: BOX.width, height: BOX.height, rx: 6 }),
    svg("text", { x: BOX.width / 2, y: BOX.height / 2 + 4, "text-anchor": "middle" }, shown),
  );
}

/* `low`: how far down a line goes that leads back; null for one that leads on. */
function line(router, places, low) {
  const [from, to] = [places.get(router.source), places.get(router.dest)];
  const [x1, y1] = [from.x + BOX.width, from.y + BOX.height / 2];
  const [x2, y2] = [to.x, to.y + BOX.height / 2];
  const bend = Math.max(40, (x2 - x1) / 2);
  const d =
    low === null
      ? `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`
      : `M${x1} ${y1}C${x1 + BACK_BEND} ${y1} ${x1 + BACK_BEND} ${low} ${x1} ${low}L${x2} ${low}C${x2 - BACK_BEND} ${low} ${x2 - BACK_BEND} ${y2} ${x2} ${y2}`;
  const [labelX, labelY] = [(x1 + x2) / 2, (low ?? (y1 + y2) / 2) - 6];
  return svg(
    "g",
    { class: `net-line ${mood(router)}`, data: { router: router.router } },
    svg("title", null, `${router.router}: ${told(router)}`),
    svg("path", { d, "marker-end": "url(#router-tip)" }),
    svg("text", { x: labelX, y: labelY, "text-anchor": "middle" }, told(router)),
  );
}

export function mood({ stalled, lag_records: lag }) {
  if (stalled) return "bad";
  return lag > 0 ? "behind" : "ok";
}

function told({ stalled, lag_records: lag, lag_ms: ms }) {
  if (stalled) return "stalled";
  return lag > 0 ? `${count(lag)} behind, ${duration(ms)}` : "up to date";
}
