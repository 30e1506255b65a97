/* A new heap. */

import { api } from "../../kit/api.js";
import { dialog } from "../../kit/dialog.js";
import { form } from "../../kit/form.js";
import { toldOf, tuning } from "./fields.js";

/* Gives the heap, or null when it was left. */
export function createHeap() {
  return dialog({
    title: "New heap",
    wide: true,
    body: (close) =>
      form({
        submit: "Make it",
        cancel: () => close(),
        fields: [
          { name: "topic", label: "Name", required: true, autofocus: true },
          {
            name: "mode",
            label: "Which priority is best",
            kind: "select",
            options: [
              { value: "MIN", label: "The lowest" },
              { value: "MAX", label: "The highest" },
            ],
            hint: "For ever.",
          },
          { name: "partitions", label: "Partitions", kind: "number", min: 1, max: 1024, step: 1, hint: "For ever. Left empty, the server chooses." },
          {
            name: "top_k_bound",
            label: "K bound",
            kind: "number",
            min: 1,
            step: 1,
            hint: "What is popped is among the best K of all partitions. On one machine it is always the best.",
          },
          ...tuning(),
        ],
        onSubmit: async (values) => close(await api.post("/v1/heaps", toldOf(values))),
      }),
  });
}
