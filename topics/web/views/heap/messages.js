/* The messages of a heap in the order they would be taken in, looked at without leasing any. */

import { api } from "../../kit/api.js";
import { h } from "../../kit/dom.js";
import { ago, count, when } from "../../kit/format.js";
import { section, toolbar } from "../../kit/state.js";
import { table } from "../../kit/table.js";
import { showMessage, stateBadge } from "./message.js";
import { preview } from "./payload.js";

const LIMITS = [25, 100, 500, 1000];

/* `changed` is called when something was done to a message. Gives an element with `load(signal)`. */
export function messages(heap, me, changed) {
  const limit = h("select", { "aria-label": "How many", on: { change: changed } }, LIMITS.map((each) => h("option", { value: each }, `First ${count(each)}`)));
  const everywhere = h("option", { value: "" }, "All partitions");
  const each = Array.from({ length: heap.partitions }, (_, at) => h("option", { value: at }, `Partition ${at}`));
  const partition = h("select", { "aria-label": "Partition", on: { change: changed } }, everywhere, each);
  const more = h("p", { class: "note", role: "status" });
  const open = (row) => h("button", { type: "button", class: "quiet mono", on: { click: () => showMessage(row, me, changed) } }, row.message_id);
  const list = table({
    label: "Messages",
    key: (row) => row.message_id,
    empty: h("p", { class: "none" }, "There are no messages."),
    columns: [
      { name: "place", label: "#", align: "end", cell: (row) => row.place },
      { name: "priority", label: "Priority", align: "end", cell: (row) => String(row.priority) },
      { name: "state", label: "State", cell: (row) => stateBadge(row.state) },
      { name: "message_id", label: "Message", cell: open },
      { name: "payload", label: "Payload", class: "payload", cell: (row) => h("code", null, preview(row)) },
      { name: "enqueued", label: "Enqueued", cell: (row) => h("time", { title: when(Date.parse(row.enqueued_time)) }, ago(Date.parse(row.enqueued_time))) },
      { name: "attempts", label: "Failed", align: "end", cell: (row) => count(row.attempts) },
    ],
  });
  const element = section(
    "Messages",
    h("p", { class: "note" }, "Ready ones first, in the order they would be taken in, then what is leased and delayed. Looking leases nothing."),
    toolbar(limit, heap.partitions > 1 && partition),
    list,
    more,
  );

  async function load(signal) {
    const query = { topic: heap.topic, limit: limit.value, partition_id: partition.value };
    const { items, has_more: hasMore } = await api.get("/v1/peek", { query, signal });
    list.update(items.map((item, at) => ({ ...item, place: at + 1 })));
    more.textContent = hasMore ? "There are more." : "";
  }

  return Object.assign(element, { load });
}
