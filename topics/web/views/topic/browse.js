/* Looking through a topic's records: from a seq, from a time, by tag, a page at a time. */

import { api, at } from "../../kit/api.js";
import { h, replace, setText, uniqueId } from "../../kit/dom.js";
import { empty } from "../../kit/empty.js";
import { count } from "../../kit/format.js";
import { button, failed, loading, toolbar } from "../../kit/state.js";
import { matchOf, TAG_HINT } from "./match.js";
import { gapLine, recordLine } from "./record.js";

const LIMIT = 50;

/* Gives an element with `show(seq)`, which goes to a seq. */
export function browse({ topic, partition, signal, headSeq }) {
  const list = h("div", { class: "records" }, loading("Reading"));
  const told = h("p", { class: "found", role: "status" });
  const seq = h("input", { type: "number", min: 0, placeholder: "first", class: "seq-field" });
  const time = h("input", { type: "datetime-local", step: 1 });
  const tag = h("input", { type: "search", placeholder: "any tag", title: TAG_HINT, maxlength: 256 });
  const back = button("Earlier", () => earlier(), { name: "left" });
  const on = button("Later", () => later(), { name: "right" });
  /* Where the pages before this one began. */
  const before = [];
  let from = { seq: 0, ts: null };
  let next = 0;

  async function read() {
    replace(list, loading("Reading"));
    try {
      const body = { from_seq: from.seq, limit: LIMIT, include_tags: true, partition };
      if (from.ts !== null) body.from_ts = from.ts;
      const match = matchOf(tag.value);
      if (match) body.match = match;
      draw(await api.post(at`/v0/topics/${topic}/diff`, body, { signal }));
    } catch (error) {
      if (!signal.aborted) replace(list, failed(error, read));
    }
  }

  function draw(page) {
    next = page.next_from_seq;
    const lines = page.records.map(recordLine);
    if (page.tombstone) lines.unshift(gapLine(page.tombstone));
    replace(list, lines.length > 0 ? lines : nothing(page));
    const [first, last] = [page.records[0], page.records.at(-1)];
    setText(told, first ? `Seqs ${count(first.$seq)} to ${count(last.$seq)} of ${count(page.head_seq)}` : "");
    on.disabled = page.caught_up;
    back.disabled = before.length === 0 && from.seq <= 0 && from.ts === null;
  }

  function nothing(page) {
    if (page.head_seq > 0) return empty({ title: "Nothing here", text: "No record lies behind this place. Go back, or take away the tag." });
    return empty({ title: "No records yet", text: "Write the first one here, or from the command line:", commands: [`topics write ${topic} '{"hello": "world"}'`] });
  }

  function start(place) {
    before.length = 0;
    from = place;
    return read();
  }

  function later() {
    before.push(from);
    from = { seq: next, ts: null };
    return read();
  }

  function earlier() {
    from = before.pop() ?? { seq: Math.max(0, from.seq - LIMIT), ts: null };
    return read();
  }

  /* Records behind a cursor come; whoever names a seq wants to see that one. */
  const show = (wanted) => {
    seq.value = wanted;
    time.value = "";
    return start({ seq: Math.max(0, wanted - 1), ts: null });
  };
  const chosen = (event) => {
    event.preventDefault();
    if (time.value) start({ seq: 0, ts: new Date(time.value).getTime() });
    else show(Number(seq.value) || 0);
  };
  const newest = () => {
    seq.value = "";
    time.value = "";
    start({ seq: Math.max(0, headSeq() - LIMIT), ts: null });
  };
  const element = h(
    "div",
    { class: "browse" },
    h(
      "form",
      { class: "browse-form", on: { submit: chosen } },
      field("From seq", seq),
      field("or from time", time),
      field("Tag", tag),
      h("button", { type: "submit", class: "primary" }, "Read"),
      button("Newest", newest),
    ),
    toolbar(back, on, told),
    list,
  );
  read();
  return Object.assign(element, { show });
}

function field(label, input) {
  input.id = uniqueId("browse");
  return h("div", { class: "field" }, h("label", { for: input.id }, label), input);
}
