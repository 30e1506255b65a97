/* The overview: at a glance that all is well, or what is not and what to do. */

import { api } from "../kit/api.js";
import { h, replace } from "../kit/dom.js";
import { duration } from "../kit/format.js";
import { every } from "../kit/live.js";
import { heading, section } from "../kit/state.js";
import { alertList } from "./overview/alerts.js";
import { Charts } from "./overview/charts.js";
import { eventTable } from "./overview/events.js";
import { figures } from "./overview/figures.js";
import { firstSteps } from "./overview/firststeps.js";
import { logTable } from "./overview/logs.js";
import { storage } from "./overview/storage.js";
import { topTopics } from "./overview/toptopics.js";

const LOOK_MS = 2000;

export default {
  title: () => "Overview",
  style: "overview",

  async mount(root, { signal }) {
    const about = h("span", { class: "faint" });
    const alerts = alertList();
    const now = figures();
    const charts = new Charts(signal);
    const tiers = storage();
    const logs = logTable();
    const busiest = topTopics();
    const events = eventTable();
    const begin = h("div", { hidden: true });
    root.append(
      heading("Overview", { actions: [about, charts.steps] }),
      alerts,
      begin,
      now,
      charts.element,
      h(
        "div",
        { class: "overview-columns" },
        section("Busiest topics", busiest),
        section("Storage", tiers),
        section("Write-ahead logs", logs),
        section("Events", events),
      ),
    );

    const look = every(LOOK_MS, signal, async () => {
      const [found, some] = await Promise.all([
        api.get("/v0/overview", { signal }),
        api.get("/v0/topics", { query: { page_size: 1 }, signal }),
      ]);
      replace(about, `up for ${duration(found.uptime_ms)}`);
      begin.hidden = some.topics.length > 0;
      if (!begin.hidden && !begin.hasChildNodes()) replace(begin, firstSteps());
      alerts.update(found.alerts);
      now.update(found.now);
      tiers.update(found.storage);
      logs.update(found.logs);
      busiest.update(found.top_topics);
      events.update(found.events);
    });
    await Promise.all([look, charts.begin()]);
  },
};
