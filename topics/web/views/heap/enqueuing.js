/* One message, enqueued by hand. */

import { api } from "../../kit/api.js";
import { dialog } from "../../kit/dialog.js";
import { parseJson } from "../../kit/exact.js";
import { FieldError } from "../../kit/fields.js";
import { form } from "../../kit/form.js";
import { asBase64 } from "./payload.js";

const SECOND_MS = 1000;

/* Gives where it went, or null when it was left. */
export function enqueueMessage(topic) {
  return dialog({
    title: `Enqueue into ${topic}`,
    wide: true,
    body: (close) => {
      const asked = form({
        submit: "Enqueue",
        cancel: () => close(),
        fields: [
          { name: "payload", label: "Payload", kind: "area", rows: 6, required: true, autofocus: true, placeholder: '{"task": "resize"}' },
          {
            name: "shape",
            label: "It is",
            kind: "select",
            options: [
              { value: "json", label: "JSON" },
              { value: "text", label: "Text" },
            ],
          },
          { name: "priority", label: "Priority", value: "0", hint: "A whole number, 64 bits with a sign." },
          { name: "delay", label: "Not before", kind: "duration", placeholder: "0s", hint: "How long it waits before anybody gets it." },
          { name: "partition_key", label: "Partition key", hint: "Messages with the same key go to the same partition." },
          { name: "max_retries", label: "Retries", kind: "number", min: 0, step: 1, hint: "Left empty, those of the heap." },
          { name: "meta", label: "Meta", kind: "json", rows: 2, placeholder: '{"trace": "a1"}' },
        ],
        onSubmit: async (values) => close(await api.post("/v1/enqueue", { topic, ...messageOf(values) })),
      });
      asked.field("payload").classList.add("code");
      return asked;
    },
  });
}

function messageOf({ payload, shape, priority, delay, partition_key: key, max_retries: retries, meta }) {
  const message = shape === "json" ? { payload_json: parsed(payload) } : { payload: asBase64(payload) };
  message.priority = priority.trim() || "0";
  if (delay) message.not_before = delay / SECOND_MS;
  if (key) message.partition_key = key;
  if (retries !== null) message.max_retries = retries;
  if (meta !== null) message.meta = meta;
  return message;
}

function parsed(text) {
  try {
    return parseJson(text);
  } catch (error) {
    throw Object.assign(new FieldError(`This is not JSON: ${error.message}`), { detail: { field: "payload" } });
  }
}
