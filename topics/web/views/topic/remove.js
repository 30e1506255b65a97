/* Taking away: records by tag or up to a seq, counted before anything goes; and the topic itself. */

import { api, at } from "../../kit/api.js";
import { confirm } from "../../kit/dialog.js";
import { h, replace } from "../../kit/dom.js";
import { form } from "../../kit/form.js";
import { bytes, count, counted } from "../../kit/format.js";
import { button, section } from "../../kit/state.js";
import { toast } from "../../kit/toast.js";
import { matchOf, TAG_HINT } from "./match.js";

/* `current()` gives the topic's state as it was last seen, `changed()` is called when records went. */
export function removing({ topic, partition, partitions, go, me, current, changed }) {
  if (!me.may("delete")) return h("p", { class: "none" }, "Deleting takes the scope delete, which you do not have.");
  return h(
    "div",
    null,
    section("Delete records", recordsForm({ topic, partition, partitions, changed })),
    section(
      "Delete the topic",
      h("p", null, "Everything in it goes, for every reader, with its routers and groups. There is no way back."),
      button("Delete the topic…", () => removeTopic(topic, current(), go), { kind: "danger", name: "delete" }),
    ),
  );
}

function recordsForm({ topic, partition, partitions, changed }) {
  const path = at`/v0/topics/${topic}/delete`;
  const preview = h("p", { class: "preview", role: "status" });
  const where = partitions > 1 ? ` of partition ${partition}` : "";
  const asked = form({
    fields: [
      { name: "tag", label: "Tag", kind: "text", hint: TAG_HINT },
      { name: "before", label: "Before seq", kind: "number", min: 0, hint: "Records below this seq. With both, both must hold." },
      { name: "erase", label: "Erase the bytes", kind: "flag", hint: "Wait until they are gone from every file as well." },
    ],
    submit: "Delete…",
    kind: "danger",
    onSubmit: async (values) => {
      const body = wanted(values);
      const { deleted: would } = await api.post(path, { ...body, dry_run: true });
      say(would);
      if (would === 0) return;
      const agreed = await confirm({
        title: `Delete ${counted(would, "record")}?`,
        body: h("p", null, h("strong", null, counted(would, "record")), `${where} of `, h("code", null, topic), ` ${condition(values)} will be gone for every reader. There is no way back.`),
        word: topic,
        action: "Delete",
        danger: true,
      });
      if (!agreed) return;
      const done = await api.post(path, { ...body, erase: values.erase });
      toast(`${counted(done.deleted, "record")} deleted; ${count(done.count)} left.`);
      replace(preview);
      changed();
    },
  });
  const look = button("Count", async () => {
    try {
      const { deleted } = await api.post(path, { ...wanted(asked.values()), dry_run: true });
      say(deleted);
    } catch (error) {
      if (error.detail) asked.fail(error);
    }
  });
  asked.querySelector(".form-actions").prepend(look);

  function say(would) {
    replace(preview, would === 0 ? `Nothing${where} fits: nothing would go.` : `${counted(would, "record")}${where} would go.`);
  }

  function wanted({ tag, before }) {
    const body = { partition };
    const match = matchOf(tag);
    if (match) body.match = match;
    if (before !== null) body.before_seq = before;
    return body;
  }

  return [asked, preview];
}

function condition({ tag, before }) {
  const parts = [];
  if (tag) parts.push(tag.endsWith("*") ? `with a tag that begins with ${tag.slice(0, -1)}` : `with the tag ${tag}`);
  if (before !== null) parts.push(`below seq ${count(before)}`);
  return parts.join(" and ");
}

async function removeTopic(topic, state, go) {
  const size = state ? `${counted(state.count, "record")}, ${bytes(state.bytes)}` : "everything in it";
  const several = state?.partitions > 1 ? ` in this partition, and what is in the other ${state.partitions - 1}` : "";
  const agreed = await confirm({
    title: "Delete this topic?",
    body: h("p", null, h("strong", null, size), `${several} will be gone, with the routers from it and to it and its groups. A topic of the same name starts again at seq 1.`),
    word: topic,
    action: "Delete the topic",
    danger: true,
  });
  if (!agreed) return;
  try {
    const { routers_removed: removed } = await api.remove(at`/v0/topics/${topic}`);
    toast(`${topic} is gone${removed.length > 0 ? `, and the routers ${removed.join(", ")}` : ""}.`);
    go("/topics");
  } catch (error) {
    toast(error.message, { kind: "bad" });
  }
}
