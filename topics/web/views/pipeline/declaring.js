/* Declaring a pipeline, or changing one: the text behind AS, from a template, and how it runs. */

import { api, at } from "../../kit/api.js";
import { dialog } from "../../kit/dialog.js";
import { form } from "../../kit/form.js";

const TEMPLATES = {
  insert: `INSERT INTO TOPIC alerts
SELECT value.sku, sum(value.cents) AS cents, window.start AS since
FROM STREAM orders SCHEMA 'sku string, cents bigint' WATERMARK ts DELAY '10 seconds'
GROUP BY value.sku, window(ts, '1 minute')`,
  merge: `MERGE INTO delta.'/data/orders' KEY (id)
FROM STREAM orders SCHEMA 'id bigint, sku string, cents bigint'`,
  append: `APPEND INTO delta.'/data/history'
FROM STREAM orders SCHEMA 'id bigint, sku string'`,
};
const CHOICES = [
  { value: "", label: "None" },
  { value: "insert", label: "A query into a topic" },
  { value: "merge", label: "The latest of each key in a Delta table" },
  { value: "append", label: "Everything into a Delta table" },
];
const OUTPUT_MODES = ["append", "update", "complete"];
const STARTS = ["earliest", "latest"];

/* `pipeline` is the one to be changed; without it a new one is declared. Gives it as it is then, or null. */
export function declarePipeline(pipeline = null) {
  const options = pipeline?.config.options ?? { trigger_ms: 500, starting: "earliest", output_mode: "append", checkpoint: "", max_records: 0 };
  return dialog({
    title: pipeline ? `Change ${pipeline.pipeline}` : "New pipeline",
    wide: true,
    body: (close) => {
      const asked = form({
        submit: pipeline ? "Change it" : "Declare it",
        cancel: () => close(),
        fields: [
          ...(pipeline ? [] : [{ name: "name", label: "Name", required: true, autofocus: true }]),
          { name: "template", label: "Template", kind: "select", options: CHOICES, value: "" },
          { name: "definition", label: "What it does", kind: "area", rows: 10, required: true, value: pipeline?.config.definition ?? "", hint: "What stands behind AS in CREATE PIPELINE." },
          { name: "trigger_ms", label: "A batch at most every", kind: "duration", value: options.trigger_ms },
          { name: "starting", label: "Begins at", kind: "select", options: STARTS, value: options.starting },
          { name: "output_mode", label: "Output mode", kind: "select", options: OUTPUT_MODES, value: options.output_mode },
          { name: "max_records", label: "Records in a batch", kind: "number", min: 0, step: 1, value: options.max_records, hint: "Of each topic; 0 for as many as there are." },
          { name: "checkpoint", label: "Position kept at", value: options.checkpoint, hint: "Left empty, a directory of the runner." },
        ],
        onSubmit: async (values) => {
          const name = pipeline?.pipeline ?? values.name;
          close(await api.put(at`/v0/pipelines/${name}`, { definition: values.definition, options: optionsOf(values) }));
        },
      });
      const definition = asked.field("definition");
      definition.classList.add("code");
      asked.field("template").addEventListener("change", (event) => {
        const text = TEMPLATES[CHOICES[event.target.selectedIndex].value];
        if (text) asked.set({ definition: text });
      });
      return asked;
    },
  });
}

function optionsOf({ trigger_ms, starting, output_mode, max_records, checkpoint }) {
  const given = Object.entries({ trigger_ms, starting, output_mode, max_records, checkpoint });
  return Object.fromEntries(given.filter(([, value]) => value !== null && value !== ""));
}
