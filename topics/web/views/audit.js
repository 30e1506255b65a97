/* The audit log: who did what, when and from where. Searched, paged back, and verified; the search is in the address. */

import { api, withQuery } from "../kit/api.js";
import { dialog } from "../kit/dialog.js";
import { h } from "../kit/dom.js";
import { empty } from "../kit/empty.js";
import { when } from "../kit/format.js";
import { jsonView } from "../kit/json.js";
import { every } from "../kit/live.js";
import { badge, button, heading, section, toolbar } from "../kit/state.js";
import { table } from "../kit/table.js";
import { actionsHead } from "./accounts/parts.js";
import { verdictView } from "./audit/chain.js";
import { Lines } from "./audit/lines.js";
import { isSearch, searchForm, wantedOf } from "./audit/search.js";

const REFRESH_MS = 5000;
const PAGE = 100;

export default {
  title: () => "Audit",
  style: ["accounts", "audit"],

  async mount(root, { query, go, signal }) {
    const wanted = wantedOf(query);
    const lines = new Lines();
    const list = entryTable(isSearch(wanted));
    const older = button("Older", () => showOlder(), { name: "down", hidden: true });
    const said = h("p", { class: "said", role: "status" });
    const verdict = h("div", { class: "verdict-place" });
    const verify = button("Verify", () => showVerdict(), { name: "ok" });
    root.append(
      heading("Audit", {
        about: "What administers or destroys, every sign-in, every key that was refused. Each line has the hash of the one before.",
        actions: [verify],
      }),
      verdict,
      searchForm(wanted, (values) => go(withQuery("/audit", values))),
      list,
      toolbar(older, said),
    );

    await every(REFRESH_MS, signal, async () => {
      const page = await api.get("/v1/audit", { query: { ...wanted, page_size: PAGE }, signal });
      lines.takeNewest(page);
      show();
    });

    function show() {
      list.update(lines.entries);
      older.hidden = !lines.cursor;
      said.textContent = lines.cursor || lines.entries.length === 0 ? "" : "That is all there is.";
    }

    /* A search looks at so many lines at a time: a page may be empty, and there is more behind it. */
    async function showOlder() {
      older.disabled = true;
      try {
        const page = await api.get("/v1/audit", { query: { ...wanted, page_size: PAGE, cursor: lines.cursor }, signal });
        lines.takeOlder(page);
        show();
        if (page.entries.length === 0 && lines.cursor) said.textContent = "Nothing found yet; there are older lines.";
      } catch (error) {
        if (!signal.aborted) said.textContent = error.message;
      } finally {
        older.disabled = false;
      }
    }

    async function showVerdict() {
      verify.disabled = true;
      verdict.replaceChildren(section("Verified", h("p", { role: "status" }, "Following the chain…")));
      try {
        verdict.replaceChildren(verdictView(await api.get("/v1/audit/verify", { signal })));
      } catch (error) {
        if (!signal.aborted) verdict.replaceChildren(h("p", { class: "notice bad", role: "alert" }, error.message));
      } finally {
        verify.disabled = false;
      }
    }
  },
};

function entryTable(searching) {
  return table({
    label: "Lines of the audit log",
    key: (row) => row.seq,
    empty: searching
      ? empty({ name: "search", title: "Nothing fits", text: "Leave out some of what you look for." })
      : empty({
          name: "audit",
          title: "Nothing was noted yet",
          text: "What administers or destroys is noted here. For example:",
          commands: ["topics topic create orders", "topics audit tail -f"],
        }),
    columns: [
      { name: "at", class: "short", label: "When", cell: (row) => h("time", { datetime: new Date(row.at).toISOString() }, when(row.at)) },
      { name: "who", label: "Who", cell: (row) => row.who || row.key || "everybody" },
      { name: "action", label: "Action", cell: (row) => h("code", null, row.action) },
      { name: "name", label: "To", class: "wrap", cell: (row) => row.name || "–" },
      { name: "outcome", label: "Outcome", cell: (row) => badge(row.outcome, outcomeKind(row.outcome)) },
      { name: "address", class: "short", label: "From", cell: (row) => row.address || row.over },
      { name: "more", label: actionsHead(), class: "actions", cell: detailsButton },
    ],
  });
}

function outcomeKind(outcome) {
  return { begun: "quiet", done: "ok" }[outcome] ?? "bad";
}

function detailsButton(row) {
  const open = () => dialog({ title: `Line ${row.seq}`, body: jsonView(row), wide: true });
  return button("Details", open, { kind: "quiet", "aria-label": `Details of line ${row.seq}` });
}
