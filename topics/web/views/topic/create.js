/* Making a topic: its name, its type, and its config, of which only what is not the default is sent. */

import { api, at } from "../../kit/api.js";
import { dialog } from "../../kit/dialog.js";
import { h, replace } from "../../kit/dom.js";
import { form } from "../../kit/form.js";
import { changed, configFields, TYPES } from "./config.js";

/* What the server would choose, as far as it matters here: a field left at it is not sent. */
const DEFAULTS = {
  partitions: 1,
  durability: "disk",
  ttl_ms: 0,
  cap_records: 0,
  cap_bytes: 0,
  discard: "old",
  protect_unarchived: false,
  protect_groups: [],
  protect_max_bytes: 1024 ** 3,
  lease_ms: 30_000,
  max_deliveries: 0,
  claim_jitter_ms: 0,
  leases_durable: false,
  auto_create: true,
  idempotency_window_ms: 120_000,
  dedupe_node: true,
  visibility_ms: 0,
  auto_priority: true,
};
/* A heap has its own; what is left empty is the server's to choose. */
const HEAP_DEFAULTS = { partitions: null, durability: null, lease_ms: null, mode: "min", compression: false };

const NAME = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,254}$/;

/* Gives the name of the topic that was made, or null when the dialog was left. */
export function createTopic({ type = "log", title = "New topic" } = {}) {
  return dialog({
    title,
    wide: true,
    body: (close) => {
      const place = h("div", { class: "create-topic" });
      const show = (chosen, name) => replace(place, topicForm(chosen, name, close, show));
      show(type, "");
      return place;
    },
  });
}

function topicForm(type, name, close, show) {
  const defaults = type === "heap" ? { ...DEFAULTS, ...HEAP_DEFAULTS } : DEFAULTS;
  const asked = form({
    fields: [
      { name: "name", label: "Name", kind: "text", required: true, value: name, autofocus: true, hint: "Letters, digits and . _ - : by convention parts with dots, such as shop.orders." },
      { name: "type", label: "Type", kind: "select", options: TYPES, value: type, hint: "This never changes." },
      ...configFields(type, defaults, { fresh: true }),
    ],
    submit: "Make the topic",
    cancel: () => close(),
    onSubmit: async ({ name: chosen, type: _, ...values }) => {
      if (!NAME.test(chosen)) throw beside("Expected letters, digits and . _ - : , at most 255, the first a letter or a digit.");
      const config = { type, ...changed(defaults, values) };
      const made = await api.put(at`/v0/topics/${chosen}` + "?if_missing=true", config);
      if (!made.created) throw beside(`There is a topic ${chosen} already.`);
      close(made.topic);
    },
  });
  asked.field("type").addEventListener("change", () => {
    show(TYPES[asked.field("type").selectedIndex].value, asked.field("name").value);
  });
  return asked;
}

function beside(message) {
  return Object.assign(new Error(message), { detail: { field: "name" } });
}
