/* One consumer group: its lag over time, its partitions, who has what, and moving, pausing and dropping it. */

import { act } from "../kit/acting.js";
import { api, ApiError, at } from "../kit/api.js";
import { confirm } from "../kit/dialog.js";
import { h } from "../kit/dom.js";
import { ago, count, counted, when } from "../kit/format.js";
import { every } from "../kit/live.js";
import { badge, button, heading, section, stat, stats, tabs } from "../kit/state.js";
import { toast } from "../kit/toast.js";
import { lagChart } from "./group/lag.js";
import { lossTable, memberTable, partitionTable, rangeTable, rowsOf } from "./group/parts.js";
import { showPause } from "../kit/pausing.js";
import { resetGroup } from "./group/resetting.js";
import { groupState } from "./group/state.js";

const REFRESH_MS = 2000;

export default {
  title: ({ group }) => `Group ${group}`,
  style: ["work", "groups"],

  async mount(root, { params, go, signal, me }) {
    const { topic, group } = params;
    const path = at`/v0/topics/${topic}/groups/${group}`;
    let states = await statesOf(topic, group, signal);
    const may = me.may("read") && me.may("write");
    const pause = button("Pause", () => turn(), { name: "pause" });
    const figures = numbers();
    const chart = lagChart(topic, group);
    const lists = { partitions: partitionTable(), members: memberTable(), ranges: rangeTable(), losses: lossTable() };

    async function turn() {
      const verb = states.some((state) => state.paused) ? "resume" : "pause";
      await act(() => api.post(`${path}/${verb}`, {}), verb === "pause" ? "Nothing is handed out until it is resumed." : "It goes on.", poll.now);
    }

    async function move() {
      const said = await resetGroup(topic, group, states);
      if (said === null) return;
      toast(said);
      poll.now();
    }

    async function drop() {
      const lag = states.reduce((sum, state) => sum + state.lag, 0);
      const sure = await confirm({
        title: `Drop ${group}?`,
        body: `The group is forgotten in ${counted(states.length, "partition")}: where it was, what is out, and that ${counted(lag, "record")} are not done. The records stay. This cannot be undone.`,
        word: group,
        action: "Drop it",
        danger: true,
      });
      if (sure) await act(() => api.remove(path), `Group ${group} is gone.`, () => go("/groups"));
    }

    root.append(
      heading(group, {
        about: h("span", null, "A group of ", h("a", { href: at`/topics/${topic}` }, topic), "."),
        actions: may ? [pause, button("Move", move, { name: "right" }), button("Drop", drop, { kind: "danger", name: "delete" })] : [],
      }),
      figures,
      chart,
      tabs(
        [
          { name: "partitions", label: "Partitions", content: section("Partitions", lists.partitions) },
          { name: "members", label: "Members", content: section("Members", lists.members) },
          { name: "ranges", label: "Ranges", content: section("Ranges", lists.ranges) },
          { name: "losses", label: "Losses", content: section("Losses", lists.losses) },
        ],
        { label: "Parts of the group" },
      ),
    );
    const poll = every(REFRESH_MS, signal, async () => {
      states = await statesOf(topic, group, signal);
      figures.update(states);
      chart.update(states);
      lists.partitions.update(states);
      for (const name of ["members", "ranges", "losses"]) lists[name].update(rowsOf(states, name));
      showPause(pause, states.some((state) => state.paused));
    });
    await poll;
  },
};

async function statesOf(topic, group, signal) {
  const { groups } = await api.get(at`/v0/topics/${topic}/groups`, { signal });
  const states = groups.filter((state) => state.group === group);
  if (states.length === 0) throw new ApiError(404, "group_not_found", `There is no group ${group} of ${topic}.`);
  return states;
}

function numbers() {
  const shown = { state: stat("State", "–"), lag: stat("Lag", "–"), flight: stat("In flight", "–"), members: stat("Members", "–"), oldest: stat("Oldest unacked", "–"), dead: stat("Dead letters", "–"), lost: stat("Lost", "–") };
  const sum = (states, name) => states.reduce((total, state) => total + state[name], 0);

  function update(states) {
    const oldest = states.map((state) => state.oldest_unacked_ts).filter((ts) => ts !== null);
    const first = oldest.length > 0 ? Math.min(...oldest) : null;
    const names = new Set(states.flatMap((state) => state.members.map((member) => member.consumer)));
    const paused = states.some((state) => state.paused);
    shown.state.update(groupState({ paused, lag: sum(states, "lag"), consumers: names.size }));
    shown.lag.update(count(sum(states, "lag")));
    shown.flight.update(count(sum(states, "in_flight")));
    shown.members.update(count(names.size));
    shown.oldest.update(first === null ? "–" : ago(first), first === null ? "" : when(first));
    shown.dead.update(count(sum(states, "dead_lettered")));
    shown.lost.update(count(sum(states, "lost_count")));
  }

  return Object.assign(stats(Object.values(shown)), { update });
}
