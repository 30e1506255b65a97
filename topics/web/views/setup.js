/* Choosing a password by a link: that of the first user, or an invitation.
 *
 * The token stands behind the `#` of the link, so that it is in no request for the page. It is taken out of the address
 * before anything else is done, and lives in this module until it is used. */

import { api } from "../kit/api.js";
import { h } from "../kit/dom.js";
import { empty } from "../kit/empty.js";
import { form } from "../kit/form.js";
import { when } from "../kit/format.js";
import { card, knock } from "./accounts/door.js";
import { chosenPassword, newPasswordFields } from "./accounts/passwords.js";

let token = takeToken();

export default {
  title: () => "Set up",
  style: "accounts",

  async mount(root, { signal }) {
    token = takeToken() || token;
    if (!token) {
      root.append(card("Set up", ""), noToken());
      return;
    }
    const place = h("div", { class: "door-place" });
    root.append(place);
    await look(place, signal);
  },
};

function takeToken() {
  const found = location.hash.slice(1);
  if (found) history.replaceState(history.state, "", location.pathname + location.search);
  return found;
}

/* Whom the link is for, and then the form; or why there is none. */
async function look(place, signal) {
  const wait = h("div", { class: "wait" });
  try {
    const link = await api.post("/v1/auth/link", { token }, { signal });
    place.replaceChildren(link.first ? first(link, wait, signal) : invited(link, wait, signal));
    place.querySelector("input").focus();
  } catch (error) {
    if (error.status !== 401) throw error;
    token = "";
    place.replaceChildren(card("Set up", ""), usedUp(error));
  }
}

function first(link, wait, signal) {
  return card(
    "Make the first user",
    `This server has no user yet. Whoever fills this in is its admin. The link is good until ${when(link.expires_ts)}.`,
    setUpForm([{ name: "email", label: "E-mail", kind: "email", required: true, autocomplete: "username" }], wait, signal),
    wait,
  );
}

function invited(link, wait, signal) {
  const email = { name: "email", label: "E-mail", kind: "email", value: link.email, disabled: true, autocomplete: "username" };
  return card("Choose a password", `The link is good until ${when(link.expires_ts)}, and once.`, setUpForm([email], wait, signal), wait);
}

function setUpForm(fields, wait, signal) {
  const isFirst = !fields[0].disabled;
  return form({
    fields: [...fields, ...newPasswordFields("password", "Password")],
    submit: isFirst ? "Make the user and sign in" : "Set the password and sign in",
    onSubmit: async (values) => {
      const body = { token, password: chosenPassword(values, "password"), ...(isFirst ? { email: values.email } : {}) };
      const signedIn = await knock(wait, signal, () => api.post("/v1/auth/setup", body));
      if (signedIn === null) return;
      token = "";
      location.replace("/");
    },
  });
}

function noToken() {
  return empty({
    name: "keys",
    title: "This page needs a link",
    text: "Open the link again that you were given: what it has behind the # is not kept. An admin makes a new one in Users, or with:",
    commands: ["topics user passwd ada@example.org"],
  });
}

function usedUp(error) {
  return empty({
    name: "keys",
    title: "This link does not work any more",
    text: error.message,
    actions: [h("a", { class: "button primary", href: "/sign-in" }, "Sign in")],
  });
}
