/* Whether the audit log is as it was written, drawn: a chain that holds, or where it is broken. */

import { copyButton } from "../../kit/copy.js";
import { h, svg } from "../../kit/dom.js";
import { count, counted } from "../../kit/format.js";
import { badge, section } from "../../kit/state.js";

const LINKS = 18;
const BROKEN_AT = 12;
const LINK_WIDTH = 26;
const STEP = 18;
const HEIGHT = 16;

/* What `GET /v1/audit/verify` answered. */
export function verdictView(verdict) {
  const { intact, line_count: lines, first_seq: first, last_seq: last, last_hash: hash, problem } = verdict;
  const said = intact
    ? `The chain holds: ${counted(lines, "line")}, ${count(first)} to ${count(last)}.`
    : `The chain does not hold. Good before that: ${counted(lines, "line")}.`;
  return section(
    "Verified",
    h(
      "div",
      { class: ["verdict", intact ? "ok" : "bad"], role: "status" },
      h("p", null, badge(intact ? "intact" : "not intact", intact ? "ok" : "bad"), " ", said),
      drawing(intact, lines > 0),
      problem && h("p", { class: "problem" }, problem),
      problem && h("p", null, "Keep the files as they are, and compare them with a backup and with a hash that was noted elsewhere."),
      hash && hashLine(hash, last, intact),
    ),
  );
}

function hashLine(hash, last, intact) {
  return h(
    "div",
    { class: "hash" },
    h("p", null, intact ? "Note it somewhere else: a chain that still has this hash was not rewritten." : "The last hash that is good:"),
    h("div", { class: "hash-line" }, h("code", null, `${last} ${hash}`), copyButton(`${last} ${hash}`, "Copy the hash")),
  );
}

/* Links side by side: those that are good, the one that is not, and those nobody can vouch for behind it. */
function drawing(intact, begins) {
  const broken = begins ? BROKEN_AT : 0;
  const kind = (index) => (intact || index < broken ? "good" : index === broken ? "broken" : "unknown");
  const links = Array.from({ length: LINKS }, (_, index) =>
    svg("rect", { class: `link ${kind(index)}`, x: 2 + index * STEP, y: 2, width: LINK_WIDTH, height: HEIGHT, rx: HEIGHT / 2 }),
  );
  const label = intact ? "A chain without a gap" : "A chain that is broken";
  const width = (LINKS - 1) * STEP + LINK_WIDTH + 4;
  return svg("svg", { class: "chain", viewBox: `0 0 ${width} ${HEIGHT + 4}`, role: "img", "aria-label": label }, links);
}
