/* Who holds which jobs, since when and until when, a page at a time; and taking a job from whoever has it. */

import { api, at } from "../../kit/api.js";
import { confirm } from "../../kit/dialog.js";
import { h, setText } from "../../kit/dom.js";
import { empty } from "../../kit/empty.js";
import { ago, count, counted, duration, when } from "../../kit/format.js";
import { every } from "../../kit/live.js";
import { button, toolbar } from "../../kit/state.js";
import { table } from "../../kit/table.js";
import { toast } from "../../kit/toast.js";

const REFRESH_MS = 2000;
const PAGE_SIZE = 100;

/* `state`: leased or delayed. `changed()` is called when jobs were released. */
export function leaseList({ topic, partition, state, me, signal, changed = () => {} }) {
  const isLeased = state === "leased";
  const mayRelease = isLeased && me.may("write");
  /* Where the pages before this one began. */
  const before = [];
  let after = 0;
  let next = null;
  const told = h("span", { class: "found", role: "status" });
  const back = button("Back", () => {
    after = before.pop() ?? 0;
    poll.now();
  }, { name: "left", disabled: true });
  const on = button("More", () => {
    before.push(after);
    after = next;
    poll.now();
  }, { name: "right", disabled: true });
  const some = mayRelease && button("Release chosen…", () => release(list.selected()), { disabled: true });
  const list = table({
    label: isLeased ? "Leases" : "Delayed jobs",
    rows: null,
    key: (row) => row.lease_id ?? row.seq,
    empty: isLeased ? nobody(topic) : empty({ title: "No job waits for its time", commands: [`topics queue put ${topic} '{"send": "reminder"}' --delay 1h`] }),
    select: mayRelease ? (rows) => (some.disabled = rows.length === 0) : null,
    columns: isLeased ? leasedColumns(mayRelease, (row) => release([row])) : delayedColumns(),
  });

  async function release(rows) {
    const holders = [...new Set(rows.map((row) => row.node))];
    const agreed = await confirm({
      title: `Release ${counted(rows.length, "job")}?`,
      body: `${counted(rows.length, "job")} of ${topic}, now with ${holders.join(", ")}, can be claimed by others at once. Whoever works on one of them cannot complete it any more.`,
      action: "Release",
      danger: true,
    });
    if (!agreed) return;
    try {
      let nacked = 0;
      for (const node of holders) {
        const own = rows.filter((row) => row.node === node);
        const body = { node, seqs: own.map((row) => row.seq), lease_ids: own.map((row) => row.lease_id), partition };
        nacked += (await api.post(at`/v0/topics/${topic}/nack`, body)).nacked;
      }
      const late = rows.length - nacked;
      toast(`${counted(nacked, "job")} released${late > 0 ? `; ${late} were not theirs any more` : ""}.`);
    } catch (error) {
      toast(error.message, { kind: "bad" });
    }
    if (mayRelease) list.clear();
    poll.now();
    changed();
  }

  const poll = every(REFRESH_MS, signal, async () => {
    const page = await api.get(at`/v0/topics/${topic}/leases`, { query: { partition, state, after, limit: PAGE_SIZE }, signal });
    next = page.next_after;
    list.update(page.leases);
    back.disabled = before.length === 0;
    on.disabled = next === null;
    setText(told, page.leases.length === 0 ? "" : `${count(page.leases.length)} shown`);
  });
  return h("div", null, toolbar(back, on, some, told), list);
}

function leasedColumns(mayRelease, release) {
  const columns = [
    { name: "seq", label: "Job", align: "end", value: (row) => row.seq, cell: (row) => count(row.seq) },
    { name: "node", label: "Worker", value: (row) => row.node },
    { name: "since", label: "Held for", class: "nowrap", value: (row) => row.since ?? 0, cell: heldCell },
    { name: "deadline", label: "Until", class: "nowrap", value: (row) => row.deadline, cell: (row) => h("span", { title: when(row.deadline) }, ago(row.deadline)) },
    { name: "deliveries", label: "Deliveries", align: "end", value: (row) => row.deliveries },
    { name: "lease", label: "Lease", class: "nowrap", cell: (row) => h("code", null, row.lease_id) },
  ];
  if (mayRelease) columns.push({ name: "actions", label: h("span", { class: "unseen" }, "Actions"), class: "actions", cell: (row) => button("Release", () => release(row), { kind: "quiet", "aria-label": `Release job ${row.seq}` }) });
  return columns;
}

function delayedColumns() {
  return [
    { name: "seq", label: "Job", align: "end", value: (row) => row.seq, cell: (row) => count(row.seq) },
    { name: "deadline", label: "Ready", class: "nowrap", value: (row) => row.deadline, cell: (row) => ago(row.deadline) },
    { name: "at", label: "At", class: "nowrap", cell: (row) => when(row.deadline) },
    { name: "deliveries", label: "Deliveries", align: "end", value: (row) => row.deliveries },
  ];
}

function heldCell({ since }) {
  if (since === null) return h("span", { class: "faint", title: "It was handed out before the server was last started." }, "since before the start");
  return h("span", { title: when(since) }, duration(Math.max(0, Date.now() - since)));
}

function nobody(topic) {
  return empty({
    name: "queues",
    title: "Nobody holds a job",
    text: "A worker takes jobs and completes them:",
    commands: [`topics work tasks:handle --queue ${topic}`, `topics queue claim ${topic}`],
  });
}
