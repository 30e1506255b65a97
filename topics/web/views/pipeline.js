/* One pipeline: what it does, how its runner says it is, its routes, its log, and pausing and dropping it. */

import { act } from "../kit/acting.js";
import { api, at } from "../kit/api.js";
import { confirm } from "../kit/dialog.js";
import { h, replace } from "../kit/dom.js";
import { empty } from "../kit/empty.js";
import { facts } from "../kit/facts.js";
import { ago, count, duration, rate, when } from "../kit/format.js";
import { every } from "../kit/live.js";
import { button, heading, section, stat, stats, tabs } from "../kit/state.js";
import { toast } from "../kit/toast.js";
import { showPause } from "../kit/pausing.js";
import { conditionBadge, lagParts, meaning, sparkLink, targetOf } from "./pipeline/condition.js";
import { declarePipeline } from "./pipeline/declaring.js";
import { logLines } from "./pipeline/logs.js";
import { rateChart } from "./pipeline/rates.js";
import { progressTable } from "./pipeline/routes.js";

const REFRESH_MS = 2000;

export default {
  title: ({ name }) => `Pipeline ${name}`,
  style: ["work", "pipelines"],

  async mount(root, { params, go, signal, me }) {
    const { name } = params;
    const path = at`/v0/pipelines/${name}`;
    let pipeline = await api.get(path, { signal });
    const pause = button("Pause", () => turn(), { name: "pause" });
    const figures = numbers();
    const chart = rateChart(name);
    const about = h("div");
    const routes = progressTable();
    const log = logLines(name);
    const trouble = h("div");
    const isRoutes = pipeline.kind === "routes";

    async function turn() {
      const verb = pipeline.paused ? "resume" : "pause";
      await act(() => api.post(`${path}/${verb}`), verb === "pause" ? "Its runner stops it, and keeps its position." : "It goes on where it was.", poll.now);
    }

    async function change() {
      if ((await declarePipeline(pipeline)) === null) return;
      toast("Its runner takes the new definition as soon as it hears of it.");
      poll.now();
    }

    async function drop() {
      const sure = await confirm({
        title: `Drop ${name}?`,
        body: "The pipeline is forgotten and its runner stops it. What it has written stays. This cannot be undone.",
        word: name,
        action: "Drop it",
        danger: true,
      });
      if (sure) await act(() => api.remove(path), `Pipeline ${name} is gone.`, () => go("/pipelines"));
    }

    const admin = me.may("admin");
    root.append(
      heading(name, {
        about: isRoutes ? `The routes of table ${pipeline.table}.` : `A pipeline into ${targetOf(pipeline)}.`,
        actions: [
          admin && pause,
          admin && !isRoutes && button("Change", change, { name: "edit" }),
          admin && !isRoutes && button("Drop", drop, { kind: "danger", name: "delete" }),
        ],
      }),
      figures,
      trouble,
      chart,
      tabs(
        [
          { name: "about", label: "What it does", content: about },
          ...(isRoutes ? [{ name: "routes", label: "Routes", content: section("Routes", routes) }] : []),
          { name: "log", label: "Log", content: log },
        ],
        { label: "Parts of the pipeline" },
      ),
    );
    const poll = every(REFRESH_MS, signal, async () => {
      [pipeline] = await Promise.all([api.get(path, { signal }), log.load(signal)]);
      const { report } = pipeline;
      figures.update(pipeline);
      chart.update(report);
      replace(trouble, troubleOf(pipeline));
      showPause(pause, pipeline.paused);
      showAbout(about, pipeline);
      if (isRoutes) routes.update(report?.routes ?? []);
    });
    await poll;
  },
};

function numbers() {
  const shown = { condition: stat("Condition", "–"), lag: stat("Behind", "–"), input: stat("Rows in", "–"), output: stat("Rows out", "–"), batch: stat("Last batch", "–"), restarts: stat("Restarts", "–"), errors: stat("Rows with errors", "–") };

  function update(pipeline) {
    const { report } = pipeline;
    shown.condition.update(conditionBadge(pipeline.condition), meaning(pipeline.condition));
    const [first = "–", ...more] = lagParts(report);
    shown.lag.update(first, [...more, report?.position].filter(Boolean).join(", "));
    shown.input.update(rate(report?.input_rows_per_second), report ? `${count(report.input_rows_total)} in all` : "");
    shown.output.update(rate(report?.output_rows_per_second), report ? `${count(report.output_rows_total)} in all` : "");
    shown.batch.update(report ? duration(report.batch_ms) : "–", report?.batch_id === null || !report ? "" : `number ${count(report.batch_id)}`);
    shown.restarts.update(report ? count(report.restarts) : "–");
    shown.errors.update(report ? count(report.error_rows_total) : "–");
  }

  return Object.assign(stats(Object.values(shown)), { update });
}

function troubleOf({ condition, report }) {
  if (condition === "waiting") {
    return empty({ name: "pipelines", title: "Nobody runs it", text: "A runner on Spark takes what is declared. Start one where it can reach this server:", commands: ["topics pipeline run"] });
  }
  if (!report?.last_error) return [];
  return h("div", { class: "failed" }, h("div", null, h("h2", null, "Last error"), h("pre", { class: "failed-text", tabindex: "0" }, report.last_error), h("p", null, ago(report.last_error_ts))));
}

function showAbout(place, pipeline) {
  const { config, report } = pipeline;
  const told = JSON.stringify([config, pipeline.digest, pipeline.reported_ts, report?.runner, report?.digest, pipeline.paused]);
  if (place.dataset.told === told) return;
  place.dataset.told = told;
  replace(
    place,
    config && section("Definition", h("pre", { class: "definition", tabindex: "0", "aria-label": "Definition" }, config.definition)),
    section(
      "Run",
      facts([
        ["Runner", report?.runner ?? "none yet"],
        ["Reported", when(pipeline.reported_ts)],
        ["Spark's page", sparkLink(report)],
        ["Definition", versionText(pipeline)],
        config && ["A batch at most every", duration(config.options.trigger_ms)],
        config && ["Reads", [...config.streams.map((each) => each.topic), ...config.tables.map((each) => each.table)].join(", ") || "–"],
        config && config.key.length > 0 && ["Key", config.key.join(", ")],
        ["Number", count(pipeline.number)],
        ["Declared", when(pipeline.created_ts)],
        ["Changed", when(pipeline.changed_ts)],
      ]),
    ),
  );
}

/* Whether the runner has come to the newest definition. */
function versionText({ digest, report }) {
  if (!report?.digest) return digest;
  return report.digest === digest ? `${digest}, which is being run` : `${digest}; its runner still has ${report.digest}`;
}
