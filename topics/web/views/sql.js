/* The SQL console: statements in, results out, as `POST /v0/sql` gives them to anybody. */

import { api, ApiError } from "../kit/api.js";
import { confirm } from "../kit/dialog.js";
import { h, replace, setText, uniqueId } from "../kit/dom.js";
import { empty } from "../kit/empty.js";
import { parseJson } from "../kit/exact.js";
import { duration } from "../kit/format.js";
import { button, heading, loading, toolbar } from "../kit/state.js";
import { editor } from "./sql/editor.js";
import { chooseFromHistory, draft, keepDraft, remember } from "./sql/history.js";
import { problem } from "./sql/problem.js";
import { results } from "./sql/results.js";
import { explained, lastWords, offsetOf, placeOf } from "./sql/statements.js";
import { vocabulary } from "./sql/vocabulary.js";

const EXAMPLE = "SHOW TOPICS;\nSELECT * FROM system.topics ORDER BY records DESC LIMIT 10;";
const SAME = (place) => place;

export default {
  title: () => "SQL",
  style: ["work", "sql"],

  async mount(root, { query, signal }) {
    let words = [];
    let running = null;
    const output = h("div", { class: "output" }, teaching());
    const took = h("span", { class: "note", role: "status" });
    const params = h("input", { id: uniqueId("params"), type: "text", class: "code", placeholder: '[42, "text"]', autocomplete: "off", spellcheck: "false" });
    const text = query.get("sql") ?? draft();
    const area = editor({ value: text || EXAMPLE, words: () => words, run: () => run(), changed: keepDraft });
    const go = button("Run", () => run(), { kind: "primary", name: "play", title: "Ctrl+Enter" });
    const stop = button("Stop", () => running?.abort(), { name: "stop", hidden: true });
    const past = async () => {
      const chosen = await chooseFromHistory();
      if (chosen !== null) area.write(chosen);
    };
    root.append(
      heading("SQL", { about: "Ask topics and system tables, and run any statement. Ctrl+Enter runs what is selected, or all of it; Ctrl+Space completes." }),
      area,
      toolbar(
        go,
        stop,
        button("Explain", () => explain(), { name: "info" }),
        button("History", past, { name: "again" }),
        h("div", { class: "field params" }, h("label", { for: params.id }, "Parameters"), params),
        took,
      ),
      output,
    );

    async function run() {
      const { text: chosen, start } = area.chosen();
      const gone = lastWords(chosen);
      if (gone.length > 0 && !(await sure(gone))) return;
      await send(chosen, start, chosen, SAME);
    }

    async function explain() {
      const { text: chosen, start } = area.chosen();
      const { text: asked, back } = explained(chosen);
      await send(chosen, start, asked, back);
    }

    async function send(chosen, start, asked, back) {
      if (running !== null || chosen.trim() === "") return;
      let values;
      try {
        values = parameters(params.value);
      } catch (error) {
        replace(output, problem(error, "", null));
        params.focus();
        return;
      }
      running = new AbortController();
      busy(true);
      area.mark(0);
      replace(output, loading("Running"));
      const began = performance.now();
      try {
        remember(chosen);
        const answer = await api.post("/v0/sql", { sql: asked, params: values }, { signal: AbortSignal.any([running.signal, signal]) });
        replace(output, results(answer.results));
        setText(took, `${duration(answer.performance.server_total_ms)} in the server, ${duration(performance.now() - began)} in all`);
      } catch (error) {
        if (signal.aborted) return;
        setText(took, "");
        fail(error, start, asked, back);
      } finally {
        running = null;
        busy(false);
      }
    }

    function busy(is) {
      go.disabled = is;
      stop.hidden = !is;
    }

    function fail(error, start, asked, back) {
      if (error.name === "AbortError") {
        replace(output, h("p", { class: "note", role: "status" }, "Stopped. Statements that were done by then stay done."));
        return;
      }
      if (error.status === 501) {
        replace(output, lacking(error));
        return;
      }
      const { line, column } = error.detail ?? {};
      const offset = line ? start + back(offsetOf(asked, line, column)) : null;
      const place = offset === null ? null : placeOf(area.text(), offset);
      if (place) area.mark(place.line);
      replace(output, problem(error, area.text(), place, () => area.select(offset)));
    }

    words = await vocabulary(signal);
  },
};

function parameters(text) {
  if (text.trim() === "") return [];
  try {
    const values = parseJson(text);
    if (Array.isArray(values)) return values;
  } catch {
    // Said below, as for all that is no array.
  }
  throw new ApiError(400, "invalid_request", 'Parameters are a JSON array, like [42, "text"]: one value for each ? in the statements.');
}

function sure(statements) {
  return confirm({
    title: statements.length === 1 ? "This cannot be undone" : "These cannot be undone",
    body: h("div", null, h("p", null, "What they take away is gone:"), h("ul", null, statements.map((text) => h("li", null, h("code", null, text))))),
    action: "Run",
    danger: true,
  });
}

function teaching() {
  return empty({
    name: "sql",
    title: "Ask something",
    text: "Topics and system tables are tables. The same statements run in a terminal:",
    commands: ["topics sql 'SHOW TOPICS'", "topics sql \"SELECT data->>'sku' AS sku, count(*) FROM orders GROUP BY ALL\""],
  });
}

function lacking(error) {
  return empty({ name: "sql", title: "This server has no SQL", text: error.message, commands: ["pip install 'topics[sql]'"] });
}
