/* The dead letters of one place: filtered, chosen, looked at, taken back and deleted, one by one or all that match. */

import { h, replace, setText } from "../../kit/dom.js";
import { ago, count, counted, when } from "../../kit/format.js";
import { button, failed, toolbar } from "../../kit/state.js";
import { table } from "../../kit/table.js";
import { toast } from "../../kit/toast.js";
import { preview } from "../heap/payload.js";
import { ask, carryOut } from "./bulk.js";
import { filterBar } from "./filter.js";
import { showLetter } from "./letter.js";

/* `letters` is a `HeapLetters` or `QueueLetters`. Gives an element with `load()`. */
export function letterList(letters, { signal, me }) {
  const may = { replay: me.may("read") && me.may("write"), delete: me.may("delete") };
  const filter = filterBar(letters.filters, () => load());
  const shown = [];
  let chosen = [];
  let next = "";
  let loading = 0;

  const some = { replay: action("replay", "Replay chosen", "again"), delete: action("delete", "Delete chosen", "delete") };
  const every = {
    replay: may.replay && button("Replay all that match", () => all("replay"), { name: "again" }),
    delete: may.delete && button("Delete all that match", () => all("delete"), { kind: "danger", name: "delete" }),
  };
  const number = h("span", { class: "note", role: "status" });
  const work = h("div");
  const trouble = h("div");
  const more = button("Show more", () => load(next), { hidden: true });
  const list = letterTable(letters, (rows) => {
    chosen = rows;
    showChosen();
  });
  const element = h(
    "div",
    { class: "letters" },
    filter,
    toolbar(some.replay, some.delete, every.replay, every.delete, number),
    work,
    trouble,
    list,
    more,
  );

  function action(verb, label, name) {
    const kind = verb === "delete" ? "danger" : "plain";
    return may[verb] && button(label, () => picked(verb), { kind, name, disabled: true });
  }

  function showChosen() {
    for (const each of [some.replay, some.delete]) if (each) each.disabled = chosen.length === 0;
    setText(number, chosen.length > 0 ? `${count(chosen.length)} chosen` : `${counted(shown.length, "dead letter")} shown${next ? ", there are more" : ""}`);
  }

  async function load(from = "") {
    loading += 1;
    const turn = loading;
    try {
      const page = await letters.page(filter.values(), from, signal);
      if (turn !== loading) return;
      if (from === "") shown.length = 0;
      shown.push(...page.letters);
      next = page.next;
      replace(trouble);
      list.update([...shown]);
      more.hidden = next === "";
      showChosen();
    } catch (error) {
      if (signal.aborted) return;
      if (from === "" && shown.length === 0) list.update([]);
      replace(trouble, failed(error, () => load(from)));
    }
  }

  async function picked(verb) {
    const rows = [...chosen];
    if (!(await ask(verb, letters.source, rows.length))) return;
    await carryOut(verb, rows.length, work, signal, () => letters.some(verb, rows, signal));
    list.clear();
    await load();
  }

  async function all(verb) {
    const wanted = filter.values();
    let total;
    try {
      total = await letters.count(wanted, verb, signal);
    } catch (error) {
      toast(error.message, { kind: "bad" });
      return;
    }
    if (total === 0) {
      toast("Nothing matches.", { kind: "warning" });
      return;
    }
    if (!(await ask(verb, letters.source, total))) return;
    await carryOut(verb, total, work, signal, () => letters.all(verb, wanted, signal));
    list.clear();
    await load();
  }

  return Object.assign(element, { load });
}

function letterTable(letters, select) {
  const open = (row) => h("button", { type: "button", class: "quiet mono", on: { click: () => showLetter(row) } }, row.name);
  const priority = { name: "priority", label: "Priority", align: "end", value: (row) => row.priority, cell: (row) => String(row.priority) };
  const tag = { name: "tag", label: "Tag", value: (row) => row.tag, cell: (row) => row.tag ?? "–" };
  return table({
    label: "Dead letters",
    key: (row) => row.key,
    select,
    empty: h("p", { class: "none" }, "No dead letters match."),
    columns: [
      { name: "name", label: "Letter", value: (row) => row.name, cell: open },
      { name: "reason", label: "Reason", value: (row) => row.reason },
      { name: "died", label: "Died", value: (row) => row.diedTs, cell: (row) => h("time", { title: when(row.diedTs) }, ago(row.diedTs)) },
      { name: "attempts", label: "Deliveries", align: "end", value: (row) => row.attempts, cell: (row) => count(row.attempts) },
      letters.hasPriorities ? priority : tag,
      { name: "payload", label: "Payload", class: "payload", cell: (row) => h("code", null, preview(row.message)) },
    ],
  });
}
