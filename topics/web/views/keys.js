/* Managed keys: made here and shown once, listed with what each may do and when it was last used, revoked by name. */

import { api, at } from "../kit/api.js";
import { confirm, dialog } from "../kit/dialog.js";
import { h } from "../kit/dom.js";
import { empty } from "../kit/empty.js";
import { form } from "../kit/form.js";
import { ago, when } from "../kit/format.js";
import { every } from "../kit/live.js";
import { showOnce } from "../kit/once.js";
import { badge, button, heading } from "../kit/state.js";
import { table } from "../kit/table.js";
import { toast } from "../kit/toast.js";
import { actionsHead, offNotice, timeCell } from "./accounts/parts.js";

const REFRESH_MS = 5000;
const DAY_MS = 86_400_000;
const STATUS_KINDS = { active: "ok", expired: "warning", revoked: "quiet" };
const LIVES = [
  { value: "", label: "It does not end" },
  { value: "1", label: "1 day" },
  { value: "7", label: "7 days" },
  { value: "30", label: "30 days" },
  { value: "90", label: "90 days" },
  { value: "365", label: "1 year" },
];
const SCOPES = {
  read: "Read records, take jobs, see how things are.",
  write: "Write records, put and settle jobs.",
  delete: "Delete records and topics.",
  admin: "Configure topics, manage keys and users.",
};

export default {
  title: () => "Keys",
  style: "accounts",

  async mount(root, { signal, me }) {
    const list = keyTable(() => poll.now());
    root.append(
      heading("Keys", {
        about: "A key lets a program in. What it may do is in its scopes, and to which names in its prefixes.",
        actions: [button("New key", () => create(me).then((made) => made && poll.now()), { kind: "primary", name: "plus" })],
      }),
      ...offNotice(me),
      list,
    );
    const poll = every(REFRESH_MS, signal, async () => {
      const { keys } = await api.get("/v1/keys", { signal });
      list.update(keys);
    });
    await poll;
  },
};

function keyTable(changed) {
  return table({
    label: "Keys",
    key: (row) => row.id,
    sort: { name: "created", descending: true },
    empty: empty({
      name: "keys",
      title: "No keys yet",
      text: "Make one here, or from the command line:",
      commands: ["topics key create ci --scope read --scope write --prefix ci. --expires 90d"],
    }),
    columns: [
      { name: "name", label: "Name", value: (row) => row.name, cell: nameCell },
      { name: "status", label: "Status", value: (row) => row.status, cell: (row) => badge(row.status, STATUS_KINDS[row.status]) },
      { name: "scopes", label: "Scopes", cell: (row) => h("span", { class: "words" }, row.scopes.map((scope) => badge(scope))) },
      { name: "prefixes", label: "Names", cell: prefixCell },
      { name: "used", class: "short", label: "Last used", value: (row) => row.last_used_ts ?? 0, cell: (row) => timeCell(row.last_used_ts) },
      { name: "expires", class: "short", label: "Ends", value: (row) => row.expires_ts ?? Infinity, cell: endCell },
      { name: "created", class: "short", label: "Made", value: (row) => row.created_ts, cell: madeCell },
      { name: "actions", label: actionsHead(), class: "actions", cell: (row) => row.status === "active" && revokeButton(row, changed) },
    ],
  });
}

function nameCell(row) {
  return h("div", null, h("strong", null, row.name), h("code", { class: "below" }, `dh_${row.id}`));
}

function prefixCell(row) {
  if (row.prefixes.length === 0) return h("span", { class: "faint" }, "any");
  return h("span", { class: "words" }, row.prefixes.map((prefix) => h("code", null, `${prefix}*`)));
}

function endCell(row) {
  if (row.revoked_ts !== null) return timeCell(row.revoked_ts);
  return row.expires_ts === null ? h("span", { class: "faint" }, "never") : timeCell(row.expires_ts);
}

function madeCell(row) {
  return h("div", null, timeCell(row.created_ts), h("span", { class: "below" }, `by ${row.created_by || "nobody"}`));
}

function revokeButton(row, changed) {
  return button("Revoke", () => revoke(row, changed), { kind: "quiet danger", "aria-label": `Revoke ${row.name}` });
}

async function revoke({ id, name, last_used_ts: used }, changed) {
  const wanted = await confirm({
    title: "Revoke this key?",
    body: h(
      "div",
      null,
      h("p", null, "From now on no request with it is answered, and streams that it opened end. This cannot be taken back."),
      h("p", null, used === null ? "It was never used." : `It was last used ${ago(used)}, at ${when(used)}.`),
    ),
    word: name,
    action: "Revoke",
    danger: true,
  });
  if (!wanted) return;
  try {
    await api.remove(at`/v1/keys/${id}`);
    toast(`The key ${name} is revoked.`);
  } catch (error) {
    toast(error.message, { kind: "bad" });
  }
  changed();
}

/* Ask what the key may do, make it, and show it. Gives the key, or null when it was left. */
async function create(me) {
  const made = await dialog({ title: "New key", body: (close) => keyForm(me, close) });
  if (made === null) return null;
  await showOnce({
    title: "Your new key",
    label: "Key",
    secret: made.key,
    about: "Keep it now, in a place for secrets. It is shown this once: only a hash of it is stored.",
    notes: [
      "The command line and the SDK read it from TOPICS_API_KEY; over HTTP it is what stands behind Bearer in Authorization.",
      made.warning,
    ].filter(Boolean),
  });
  return made;
}

function keyForm(me, close) {
  const offered = Object.entries(SCOPES).filter(([scope]) => me.may(scope));
  return form({
    fields: [
      { name: "name", label: "Name", kind: "text", required: true, hint: "What it is for, such as the program that will use it." },
      ...offered.map(([scope, hint]) => ({ name: scope, label: `May ${scope}`, kind: "flag", value: scope === "read", hint })),
      { name: "prefixes", label: "Only names that begin with", kind: "tags", value: [], hint: "None is any name." },
      { name: "days", label: "Ends after", kind: "select", value: "", options: LIVES },
    ],
    submit: "Make the key",
    cancel: () => close(),
    onSubmit: async (values) => {
      const scopes = offered.map(([scope]) => scope).filter((scope) => values[scope]);
      const expires = values.days ? { expires_ts: Date.now() + Number(values.days) * DAY_MS } : {};
      close(await api.post("/v1/keys", { name: values.name, scopes, prefixes: values.prefixes, ...expires }));
    },
  });
}
