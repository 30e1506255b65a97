/* The map of a topic's seqs, drawn: from the first seq on the left to the last one on the right, what became of them.
 *
 * Each column is a bucket of `GET /v0/topics/{topic}/map`, filled by shares. A pointer over it, or the arrow keys when it has
 * the focus, read out a bucket; a click or Enter opens its records. For who cannot see it, stretches that are alike are
 * put into words. */

import { h, replace, setText, svg } from "../../kit/dom.js";
import { count } from "../../kit/format.js";

const HEIGHT = 56;
const LAKE_HEIGHT = 6;
const PARTS = [
  { name: "live", label: "live" },
  { name: "deleted", label: "deleted" },
  { name: "evicted", label: "evicted" },
  { name: "lost", label: "lost" },
];

/* `open(seq)` is called with the first seq of what was chosen. Gives an element with `update(buckets)`. */
export function seqMap(open) {
  const drawing = svg("svg", { class: "seqmap-drawing", height: HEIGHT, preserveAspectRatio: "none", "aria-hidden": "true" });
  const cursor = svg("rect", { class: "seqmap-cursor", y: 0, height: HEIGHT, visibility: "hidden" });
  const plot = h("div", { class: "seqmap-plot", tabindex: "0", role: "slider", "aria-label": "Place in the topic", "aria-valuemin": "1" }, drawing);
  const told = h("p", { class: "seqmap-told" });
  const words = h("ul", { class: "unseen" });
  const legend = h("ul", { class: "seqmap-legend" });
  const element = h("figure", { class: "seqmap", "aria-label": "Map of seqs" }, plot, told, legend, words);
  let buckets = [];
  let at = null;

  function update(next) {
    buckets = next;
    drawing.setAttribute("viewBox", `0 0 ${Math.max(1, buckets.length)} ${HEIGHT}`);
    drawing.replaceChildren(...buckets.flatMap(column), cursor);
    plot.setAttribute("aria-valuemax", String(buckets.at(-1)?.last_seq ?? 1));
    replace(legend, legendLines(buckets));
    replace(words, stretches(buckets).map((each) => h("li", null, each)));
    if (at !== null && at >= buckets.length) at = null;
    tell();
  }

  function tell() {
    const bucket = at === null ? null : buckets[at];
    cursor.setAttribute("visibility", bucket ? "visible" : "hidden");
    if (bucket) {
      cursor.setAttribute("x", at);
      cursor.setAttribute("width", 1);
    }
    setText(told, bucket ? described(bucket) : ends(buckets));
    plot.setAttribute("aria-valuenow", String(bucket?.first_seq ?? buckets[0]?.first_seq ?? 1));
    plot.setAttribute("aria-valuetext", told.textContent);
  }

  function move(to) {
    if (buckets.length === 0) return;
    at = Math.max(0, Math.min(buckets.length - 1, to));
    tell();
  }

  function under(event) {
    const { left, width } = plot.getBoundingClientRect();
    return Math.floor(((event.clientX - left) / width) * buckets.length);
  }

  plot.addEventListener("pointermove", (event) => move(under(event)));
  plot.addEventListener("pointerleave", () => {
    at = null;
    tell();
  });
  plot.addEventListener("click", (event) => {
    move(under(event));
    if (at !== null) open(buckets[at].first_seq);
  });
  plot.addEventListener("keydown", (event) => {
    const moves = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 16, PageDown: -16, Home: -buckets.length, End: buckets.length };
    if (event.key in moves) {
      event.preventDefault();
      move((at ?? (moves[event.key] > 0 ? -1 : buckets.length)) + moves[event.key]);
    } else if (event.key === "Enter" && at !== null) {
      open(buckets[at].first_seq);
    }
  });
  return Object.assign(element, { update });
}

function column(bucket, index) {
  const width = bucket.last_seq - bucket.first_seq + 1;
  const room = HEIGHT - LAKE_HEIGHT - 1;
  let y = 0;
  const parts = [];
  for (const { name } of PARTS) {
    if (bucket[name] === 0) continue;
    const height = (bucket[name] / width) * room;
    parts.push(svg("rect", { class: `seqmap-${name}`, x: index, y: y.toFixed(2), width: 1.02, height: height.toFixed(2) }));
    y += height;
  }
  if (bucket.archived > 0) {
    parts.push(svg("rect", { class: "seqmap-archived", x: index, y: HEIGHT - LAKE_HEIGHT, width: (1.02 * bucket.archived) / width, height: LAKE_HEIGHT }));
  }
  return parts;
}

function legendLines(buckets) {
  const sums = [...PARTS, { name: "archived", label: "in an archive" }].map(({ name, label }) => {
    const sum = buckets.reduce((total, bucket) => total + bucket[name], 0);
    return (sum > 0 || name === "live") && h("li", null, h("span", { class: `seqmap-key seqmap-${name}`, "aria-hidden": "true" }), `${count(sum)} ${label}`);
  });
  return sums.filter(Boolean);
}

function described(bucket) {
  const parts = [...PARTS, { name: "archived", label: "in an archive" }].filter(({ name }) => bucket[name] > 0);
  return `${range(bucket.first_seq, bucket.last_seq)}: ${parts.map(({ name, label }) => `${count(bucket[name])} ${label}`).join(", ")}`;
}

function ends(buckets) {
  return buckets.length === 0 ? "No record was ever written here." : range(buckets[0].first_seq, buckets.at(-1).last_seq);
}

function range(first, last) {
  return first === last ? `Seq ${count(first)}` : `Seqs ${count(first)} to ${count(last)}`;
}

/* Neighbours with the same kinds of seqs in them are one line. */
function stretches(buckets) {
  const kinds = (bucket) => [...PARTS.map(({ name }) => name), "archived"].filter((name) => bucket[name] > 0).join(" ");
  const found = [];
  for (const bucket of buckets) {
    const last = found.at(-1);
    if (last && last.kinds === kinds(bucket)) {
      for (const name of ["live", "deleted", "evicted", "lost", "archived"]) last[name] += bucket[name];
      last.last_seq = bucket.last_seq;
    } else {
      found.push({ ...bucket, kinds: kinds(bucket) });
    }
  }
  return found.map(described);
}
