/* Moving a group: where to, and what that means, before it is done. */

import { api, at } from "../../kit/api.js";
import { dialog } from "../../kit/dialog.js";
import { h, replace } from "../../kit/dom.js";
import { FieldError } from "../../kit/fields.js";
import { form } from "../../kit/form.js";
import { count, counted } from "../../kit/format.js";
import { partitionOf } from "./lag.js";

const ALL = "all";
const PLACES = [
  { value: "earliest", label: "The earliest record" },
  { value: "latest", label: "Behind the latest record" },
  { value: "seq", label: "A seq" },
  { value: "time", label: "A time" },
];

/* `states` are those of the group, one a partition. Gives what was done in words, or null when it was left. */
export function resetGroup(topic, group, states) {
  const partitions = [{ value: ALL, label: "All of them" }, ...states.map((state) => ({ value: String(partitionOf(state)), label: `Partition ${partitionOf(state)}` }))];
  return dialog({
    title: `Move ${group}`,
    wide: true,
    body: (close) => {
      const preview = h("div", { class: "reset-preview", role: "status" });
      const asked = form({
        submit: "Move it",
        kind: "danger",
        cancel: () => close(),
        fields: [
          ...(states.length > 1 ? [{ name: "partition", label: "Where", kind: "select", options: partitions }] : []),
          { name: "place", label: "Go on at", kind: "select", options: PLACES, autofocus: true },
          { name: "seq", label: "Seq", kind: "number", min: 0, step: 1, hint: "The first record that is handed out." },
          { name: "time", label: "Time", kind: "text", placeholder: "2026-11-15 12:00:00", hint: "Records written then or later are handed out." },
        ],
        onSubmit: async (values) => {
          const chosen = chosenOf(states, values.partition);
          for (const state of chosen) {
            await api.post(at`/v0/topics/${topic}/groups/${group}/reset`, { to: toOf(values), partition: partitionOf(state) });
          }
          close(`${group} was moved in ${counted(chosen.length, "partition")}.`);
        },
      });
      let turn = 0;
      const look = async () => {
        turn += 1;
        const now = turn;
        showFields(asked);
        const lines = await previewOf(topic, states, asked);
        if (now === turn) replace(preview, lines);
      };
      asked.addEventListener("input", look);
      asked.querySelector(".form-actions").before(preview);
      look();
      return asked;
    },
  });
}

/* Only the field that belongs to the place is there. */
function showFields(asked) {
  const place = PLACES[asked.field("place").selectedIndex].value;
  for (const name of ["seq", "time"]) asked.field(name).closest(".field").hidden = place !== name;
}

function chosenOf(states, partition = ALL) {
  return partition === ALL ? states : states.filter((state) => String(partitionOf(state)) === partition);
}

function toOf({ place, seq, time }) {
  if (place === "seq") {
    if (seq === null) throw wrong("seq", "Say which seq.");
    return seq;
  }
  if (place === "time") {
    const ts = Date.parse(time);
    if (Number.isNaN(ts)) throw wrong("time", "Expected a time, like 2026-11-15 12:00:00.");
    return { ts };
  }
  return place;
}

function wrong(field, message) {
  return Object.assign(new FieldError(message), { detail: { field } });
}

async function previewOf(topic, states, asked) {
  const read = (name) => asked.field(name)?.value ?? "";
  const place = PLACES[asked.field("place").selectedIndex].value;
  const values = { place, seq: read("seq") === "" ? null : Number(read("seq")), time: read("time") };
  const partition = states.length > 1 ? [ALL, ...states.map((state) => String(partitionOf(state)))][asked.field("partition").selectedIndex] : ALL;
  let to;
  try {
    to = toOf(values);
  } catch {
    return [];
  }
  try {
    const lines = await Promise.all(chosenOf(states, partition).map(async (state) => [state, await committedAt(topic, state, to)]));
    return h("ul", null, lines.map(([state, committed]) => h("li", null, effect(state, committed, states.length > 1))));
  } catch (error) {
    return h("p", { class: "problem" }, error.message);
  }
}

/* Up to which seq everything would count as done. */
async function committedAt(topic, state, to) {
  if (to === "latest") return state.head_seq;
  if (to === "earliest") return state.earliest_seq - 1;
  if (typeof to === "number") return Math.max(0, to - 1);
  const body = { from_ts: to.ts, limit: 1, include_meta: false, partition: partitionOf(state) };
  const { records } = await api.post(at`/v0/topics/${topic}/diff`, body);
  return records.length > 0 ? records[0].$seq - 1 : state.head_seq;
}

function effect(state, committed, several) {
  const where = several ? `Partition ${partitionOf(state)}: ` : "";
  const lost = state.in_flight > 0 ? ` What is out now, ${counted(state.in_flight, "record")}, can not be acked any more.` : "";
  const readFrom = Math.max(committed, state.earliest_seq - 1);
  const next = `goes on at seq ${count(readFrom + 1)}`;
  if (committed < state.committed_seq) return `${where}${next}: up to ${counted(state.committed_seq - readFrom, "record")} will be read again.${lost}`;
  if (committed > state.committed_seq) return `${where}${next}: up to ${counted(committed - state.committed_seq, "record")} will be skipped.${lost}`;
  return `${where}stays where it is.${lost}`;
}
