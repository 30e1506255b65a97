/* The config of a heap: what is for ever, and what can be changed. */

import { api, at } from "../../kit/api.js";
import { h } from "../../kit/dom.js";
import { facts } from "../../kit/facts.js";
import { form } from "../../kit/form.js";
import { count, duration, when } from "../../kit/format.js";
import { section } from "../../kit/state.js";
import { toast } from "../../kit/toast.js";
import { toldOf, tuning } from "./fields.js";

export function config(heap, me, changed) {
  return section(
    "Config",
    facts([
      ["Best", heap.mode === "MIN" ? "the lowest priority" : "the highest priority"],
      ["Partitions", count(heap.partitions)],
      ["K bound", count(heap.top_k_bound)],
      ["Copies", `${count(heap.replicas)} of ${count(heap.replication_factor)} asked for`],
      ["Durability", heap.durability],
      ["Dead letters", heap.dlq_policy.topic ?? "none are kept"],
      ["Made", when(Date.parse(heap.created_at))],
      ["Changed", when(Date.parse(heap.updated_at))],
    ]),
    heap.warnings.map((warning) => h("p", { class: "note warning" }, warning)),
    me.may("admin") ? changing(heap, changed) : h("p", { class: "note" }, `A lease lasts ${duration(1000 * heap.visibility_timeout_default)}.`),
  );
}

function changing(heap, changed) {
  return form({
    fields: tuning(heap),
    onSubmit: async (values) => {
      await api.patch(at`/v1/heaps/${heap.topic}`, toldOf(values));
      toast("The config is changed.");
      changed();
    },
  });
}
