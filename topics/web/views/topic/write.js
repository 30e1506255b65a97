/* Writing one record, or putting one job. */

import { api, at } from "../../kit/api.js";
import { parseJson } from "../../kit/exact.js";
import { FieldError } from "../../kit/fields.js";
import { form } from "../../kit/form.js";
import { count } from "../../kit/format.js";
import { toast } from "../../kit/toast.js";

const KINDS = [
  { value: "json", label: "JSON" },
  { value: "text", label: "Text" },
];

const WHOLE = /^-?\d+$/;

/* `written(answer)` is told of what was written. */
export function writeForm({ topic, type, partitions, written, submit = "Write", cancel = null }) {
  const fields = [
    { name: "data", label: "Data", kind: "area", rows: 6, placeholder: '{"sku": "A1"}' },
    { name: "kind", label: "The data is", kind: "select", options: KINDS, value: "json" },
    { name: "tag", label: "Tag", kind: "text", hint: "By which it can be found and deleted." },
    { name: "node", label: "Node", kind: "text", hint: "Who writes." },
    { name: "meta", label: "Meta", kind: "json", rows: 3, placeholder: '{"trace": "4711"}', hint: "An object of texts." },
    { name: "idempotency_key", label: "Idempotency key", kind: "text", hint: "Written twice with the same key, it is there once." },
  ];
  if (type !== "log") fields.push({ name: "delay_ms", label: "Not before", kind: "duration", min: 0, hint: "Nobody gets it for so long, such as 10m." });
  if (partitions > 1) {
    fields.push(
      { name: "key", label: "Key", kind: "text", hint: "Chooses the partition." },
      { name: "partition", label: "or partition", kind: "number", min: 0, max: partitions - 1 },
    );
  }
  const element = form({
    fields,
    submit,
    cancel,
    onSubmit: async (values) => {
      const record = { data: values.kind === "text" ? values.data : parsed(values.data) };
      for (const name of ["tag", "node"]) if (values[name]) record[name] = values[name];
      if (values.meta !== null) record.meta = values.meta;
      const body = { records: [record], create: false };
      for (const name of ["idempotency_key", "key"]) if (values[name]) body[name] = values[name];
      for (const name of ["delay_ms", "partition"]) if (values[name] !== null && values[name] !== undefined) body[name] = values[name];
      const answer = await api.post(at`/v0/topics/${topic}`, body);
      toast(answer.deduped ? `It was there already, as seq ${count(answer.first_seq)}.` : `Written as seq ${count(answer.first_seq)}.`);
      element.set({ data: "", idempotency_key: "" });
      written(answer);
    },
  });
  return element;
}

/* Whole numbers are sent figure by figure. Of a fraction with more digits than a browser keeps, some would be lost on the
 * way, so it is refused. */
function parsed(text) {
  const wrong = (message) => Object.assign(new FieldError(message), { detail: { field: "data" } });
  let inexact = null;
  let value;
  try {
    JSON.parse(text, (_, part, { source = "" } = {}) => {
      if (typeof part === "number" && !WHOLE.test(source) && digits(String(part)) !== digits(source)) inexact ??= source;
      return part;
    });
    value = parseJson(text);
  } catch (error) {
    throw wrong(`This is not JSON: ${error.message}`);
  }
  if (inexact !== null) throw wrong(`${inexact} would lose digits in a browser. Write it as text, or from the command line.`);
  return value;
}

/* The digits that make the value, whatever the exponent: 1.50 and 15e-1 have the same. */
function digits(number) {
  const [figures] = number.toLowerCase().replace("-", "").split("e");
  return figures.replace(".", "").replace(/^0+|0+$/g, "");
}
