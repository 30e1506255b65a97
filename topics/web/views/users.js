/* People who sign in: invited by a link that is shown once, given roles, disabled, removed. */

import { api, at } from "../kit/api.js";
import { confirm, dialog } from "../kit/dialog.js";
import { h } from "../kit/dom.js";
import { empty } from "../kit/empty.js";
import { form } from "../kit/form.js";
import { counted, when } from "../kit/format.js";
import { every } from "../kit/live.js";
import { showOnce } from "../kit/once.js";
import { badge, button, heading } from "../kit/state.js";
import { table } from "../kit/table.js";
import { toast } from "../kit/toast.js";
import { actionsHead, offNotice, timeCell } from "./accounts/parts.js";

const REFRESH_MS = 5000;
const STATUS_KINDS = { active: "ok", invited: "info", disabled: "warning" };
const ROLES = [
  { value: "viewer", label: "viewer: reads" },
  { value: "operator", label: "operator: reads, writes and deletes" },
  { value: "admin", label: "admin: everything, keys and users too" },
];

export default {
  title: () => "Users",
  style: "accounts",

  async mount(root, { signal, me }) {
    const changed = () => poll.now();
    const list = userTable(me, changed);
    root.append(
      heading("Users", {
        about: "People who sign in with an e-mail and a password. A role says what they may do; it counts at once.",
        actions: [button("Invite", () => invite(changed), { kind: "primary", name: "plus" })],
      }),
      ...offNotice(me),
      list,
    );
    const poll = every(REFRESH_MS, signal, async () => {
      const { users } = await api.get("/v1/users", { signal });
      list.update(users);
    });
    await poll;
  },
};

function userTable(me, changed) {
  return table({
    label: "Users",
    key: (row) => row.id,
    sort: { name: "email", descending: false },
    empty: empty({
      name: "users",
      title: "No users yet",
      text: "Invite the first one here, or from the command line:",
      commands: ["topics user add ada@example.org --role admin"],
    }),
    columns: [
      { name: "email", label: "E-mail", value: (row) => row.email, cell: (row) => emailCell(row, me) },
      { name: "role", class: "short", label: "Role", value: (row) => row.role },
      { name: "status", label: "Status", value: (row) => row.status, cell: statusCell },
      { name: "signed", class: "short", label: "Signed in", value: (row) => row.signed_in_ts ?? 0, cell: (row) => timeCell(row.signed_in_ts) },
      { name: "sessions", label: "Sessions", value: (row) => row.session_count, align: "end" },
      { name: "created", class: "short", label: "Since", value: (row) => row.created_ts, cell: (row) => timeCell(row.created_ts) },
      { name: "actions", label: actionsHead(), class: "actions", cell: (row) => actionsCell(row, me, changed) },
    ],
  });
}

function emailCell(row, me) {
  const isMe = me.user?.id === row.id;
  return h("div", null, h("strong", null, row.email), isMe && h("a", { class: "below", href: "/account" }, "that is you"));
}

function statusCell(row) {
  const until = row.link_expires_ts && h("span", { class: "below" }, `link good until ${when(row.link_expires_ts)}`);
  return h("div", null, badge(row.status, STATUS_KINDS[row.status]), until);
}

/* Nobody changes their own role, disables or removes themselves. */
function actionsCell(row, me, changed) {
  if (me.user?.id === row.id) return null;
  const action = (label, work, kind = "quiet") =>
    button(label, () => work(row, changed), { kind, "aria-label": `${label}: ${row.email}` });
  return h(
    "div",
    { class: "row-actions" },
    action("Role", changeRole),
    action("New link", newLink),
    row.status === "disabled" ? action("Enable", enable) : action("Disable", disable),
    action("Remove", remove, "quiet danger"),
  );
}

// ---- what can be done

async function invite(changed) {
  const made = await dialog({
    title: "Invite somebody",
    body: (close) =>
      form({
        fields: [
          { name: "email", label: "E-mail", kind: "email", required: true, hint: "By which they sign in. No mail is sent." },
          { name: "role", label: "Role", kind: "select", value: "viewer", options: ROLES },
        ],
        submit: "Invite",
        cancel: () => close(),
        onSubmit: async (values) => close(await api.post("/v1/users", values)),
      }),
  });
  if (made === null) return;
  changed();
  await showLink(made);
}

async function changeRole({ id, email, role }, changed) {
  const done = await dialog({
    title: `The role of ${email}`,
    body: (close) =>
      form({
        fields: [{ name: "role", label: "Role", kind: "select", value: role, options: ROLES }],
        submit: "Give this role",
        cancel: () => close(),
        onSubmit: async (values) => close(await api.patch(at`/v1/users/${id}`, values)),
      }),
  });
  if (done === null) return;
  toast(`${email} is ${done.role} now.`);
  changed();
}

async function newLink({ id, email, session_count: sessions }, changed) {
  const wanted = await confirm({
    title: "Make a new link?",
    body: `The password of ${email} does not work any more, and ${counted(sessions, "session")} will end. By the link they choose a new one.`,
    action: "Make the link",
  });
  if (!wanted) return;
  const made = await attempt(() => api.patch(at`/v1/users/${id}`, { new_link: true }), "", changed);
  if (made) await showLink(made);
}

async function disable({ id, email, session_count: sessions }, changed) {
  const wanted = await confirm({
    title: "Disable this user?",
    body: `${email} cannot sign in until somebody enables them again; ${counted(sessions, "session")} will end now.`,
    word: email,
    action: "Disable",
    danger: true,
  });
  if (wanted) await attempt(() => api.patch(at`/v1/users/${id}`, { disabled: true }), `${email} is disabled.`, changed);
}

function enable({ id, email }, changed) {
  return attempt(() => api.patch(at`/v1/users/${id}`, { disabled: false }), `${email} can sign in again.`, changed);
}

async function remove({ id, email, session_count: sessions }, changed) {
  const wanted = await confirm({
    title: "Remove this user?",
    body: `${email} goes for good, with ${counted(sessions, "session")}. Keys that they made stay: revoke those one by one.`,
    word: email,
    action: "Remove",
    danger: true,
  });
  if (wanted) await attempt(() => api.remove(at`/v1/users/${id}`), `${email} is removed.`, changed);
}

/* Do it, and say how it went. Gives the answer, or null when it was refused. */
async function attempt(work, said, changed) {
  try {
    const answer = await work();
    if (said) toast(said);
    return answer;
  } catch (error) {
    toast(error.message, { kind: "bad" });
    return null;
  } finally {
    changed();
  }
}

function showLink(made) {
  return showOnce({
    title: `A link for ${made.email}`,
    label: "Link",
    secret: `${location.origin}${made.link}`,
    about: "Send it to them on a way that only they read: whoever opens it first chooses the password.",
    notes: [`It works once, until ${when(made.link_expires_ts)}, and is shown this once.`, made.warning].filter(Boolean),
  });
}
