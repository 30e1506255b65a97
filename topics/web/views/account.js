/* One's own account: the password, and where one is signed in. */

import { api, at } from "../kit/api.js";
import { confirm } from "../kit/dialog.js";
import { h } from "../kit/dom.js";
import { form } from "../kit/form.js";
import { counted } from "../kit/format.js";
import { every } from "../kit/live.js";
import { badge, button, heading, section, toolbar } from "../kit/state.js";
import { table } from "../kit/table.js";
import { toast } from "../kit/toast.js";
import { browserOf } from "./accounts/agent.js";
import { actionsHead, nobody, timeCell } from "./accounts/parts.js";
import { chosenPassword, newPasswordFields } from "./accounts/passwords.js";

const REFRESH_MS = 10_000;

export default {
  title: () => "Account",
  style: "accounts",

  async mount(root, { signal, me }) {
    if (me.kind !== "user") {
      root.append(heading("Account"), nobody());
      return;
    }
    const { email, role } = me.user;
    const others = button("End all others", () => endOthers(), { kind: "danger", disabled: true });
    const list = sessionTable((session) => end([session]));
    root.append(
      heading("Account", { about: `${email}, ${role}` }),
      section("Where you are signed in", toolbar(others), list),
      section("Password", passwordForm(email, () => poll.now())),
    );
    let sessions = [];
    const poll = every(REFRESH_MS, signal, async () => {
      sessions = (await api.get("/v1/auth/sessions", { signal })).sessions;
      others.disabled = !sessions.some((session) => !session.current);
      list.update(sessions);
    });
    await poll;

    async function endOthers() {
      const rest = sessions.filter((session) => !session.current);
      const wanted = await confirm({
        title: "End all other sessions?",
        body: `${counted(rest.length, "session")} will end: whoever has one of them has to sign in again.`,
        action: "End them",
        danger: true,
      });
      if (wanted) await end(rest);
    }

    async function end(ended) {
      try {
        for (const { id } of ended) await api.remove(at`/v1/auth/sessions/${id}`);
        toast(ended.length === 1 ? "The session is over." : `${counted(ended.length, "session")} ended.`);
      } catch (error) {
        toast(error.message, { kind: "bad" });
      }
      await poll.now();
    }
  },
};

function sessionTable(end) {
  const endButton = (row) => button("End", () => end(row), { kind: "quiet danger", "aria-label": `End the session from ${row.address}` });
  return table({
    label: "Sessions",
    key: (row) => row.id,
    sort: { name: "refreshed", descending: true },
    columns: [
      { name: "agent", label: "Browser", value: (row) => browserOf(row.agent), cell: browserCell },
      { name: "address", class: "short", label: "From", value: (row) => row.address, cell: (row) => h("code", null, row.address) },
      { name: "created", class: "short", label: "Signed in", value: (row) => row.created_ts, cell: (row) => timeCell(row.created_ts) },
      { name: "refreshed", class: "short", label: "Last refreshed", value: (row) => row.refreshed_ts, cell: (row) => timeCell(row.refreshed_ts) },
      { name: "expires", class: "short", label: "Ends", value: (row) => row.expires_ts, cell: (row) => timeCell(row.expires_ts) },
      { name: "actions", label: actionsHead(), class: "actions", cell: (row) => (row.current ? badge("this one", "info") : endButton(row)) },
    ],
  });
}

function browserCell(row) {
  return h("span", { title: row.agent }, browserOf(row.agent));
}

function passwordForm(email, changed) {
  const fields = form({
    fields: [
      { name: "email", label: "E-mail", kind: "email", value: email, disabled: true, autocomplete: "username" },
      { name: "current_password", label: "Current password", kind: "password", required: true, autocomplete: "current-password" },
      ...newPasswordFields("new_password", "New password"),
    ],
    submit: "Change the password",
    onSubmit: async (values) => {
      const new_password = chosenPassword(values, "new_password");
      await api.post("/v1/auth/password", { current_password: values.current_password, new_password });
      fields.set({ current_password: "", new_password: "", again: "" });
      toast("The password is changed, and all your other sessions have ended.");
      await changed();
    },
  });
  return fields;
}
