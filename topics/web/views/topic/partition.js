/* Which partition of a topic is looked at; it is in the address. */

import { h } from "../../kit/dom.js";

/* `path` is the page's, without a query. Nothing for a topic that has only one. */
export function partitionChoice(path, { partition, partitions, go }) {
  if (partitions === 1) return null;
  const options = Array.from({ length: partitions }, (_, number) => h("option", { value: number }, `Partition ${number}`));
  const choose = () => go(`${path}?partition=${select.value}`);
  const select = h("select", { "aria-label": "Partition", value: partition, on: { change: choose } }, options);
  return select;
}
