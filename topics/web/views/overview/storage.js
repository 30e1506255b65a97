/* What the disk is used for, by tier. */

import { stack } from "../../kit/chart.js";
import { h, setText } from "../../kit/dom.js";
import { bytes } from "../../kit/format.js";

const TIERS = [
  ["wal", "Write-ahead log", "wal_bytes"],
  ["hot", "Hot segments", "hot_bytes"],
  ["cold", "Cold segments", "cold_bytes"],
  ["free", "Free", "free_bytes"],
];

/* Gives an element with `update(storage)`. */
export function storage() {
  const parts = (sizes) => TIERS.map(([name, label, field]) => ({ name, label, value: sizes?.[field] ?? 0 }));
  const bar = stack({ parts: parts(null), label: "Disk space by tier" });
  const memory = h("p", { class: "faint" });
  const element = h("div", { class: "storage" }, bar, memory);
  const update = (sizes) => {
    bar.update(parts(sizes));
    setText(memory, `${bytes(sizes.memory_bytes)} of data and meta are retained.`);
  };
  return Object.assign(element, { update });
}
