/* Signing in, and back to where one was. */

import { safePath } from "../frame/address.js";
import { api } from "../kit/api.js";
import { h } from "../kit/dom.js";
import { form } from "../kit/form.js";
import { card, knock } from "./accounts/door.js";

export default {
  title: () => "Sign in",
  style: "accounts",

  async mount(root, { query, signal }) {
    const wait = h("div", { class: "wait" });
    const fields = form({
      fields: [
        { name: "email", label: "E-mail", kind: "email", required: true, autocomplete: "username", autofocus: true },
        { name: "password", label: "Password", kind: "password", required: true, autocomplete: "current-password" },
      ],
      submit: "Sign in",
      onSubmit: async (values) => {
        const signedIn = await knock(wait, signal, () => api.post("/v1/auth/login", values));
        // Loaded anew: whoever was here before leaves nothing behind.
        if (signedIn !== null) location.replace(safePath(query.get("back")));
      },
    });
    root.append(
      card(
        "Sign in",
        "",
        fields,
        wait,
        h(
          "p",
          { class: "door-note" },
          "No account, or no password? An admin makes a link for you. On a new server, the link is what ",
          h("code", null, "topics serve"),
          " prints.",
        ),
      ),
    );
    fields.field("email").focus();
  },
};
