/* The config of a topic, to be changed: only what is another value is sent. */

import { api, at } from "../../kit/api.js";
import { h } from "../../kit/dom.js";
import { form } from "../../kit/form.js";
import { jsonView } from "../../kit/json.js";
import { toast } from "../../kit/toast.js";
import { changed, configFields } from "./config.js";

export function settings({ topic, state, me, saved }) {
  if (!me.may("admin")) return h("div", null, h("p", { class: "none" }, "Changing it takes the scope admin. It is:"), jsonView(state.config));
  let known = state.config;
  const asked = form({
    fields: configFields(state.type, known),
    submit: "Save",
    onSubmit: async (values) => {
      const fields = changed(known, values);
      if (Object.keys(fields).length === 0) {
        toast("Nothing is another value than before.");
        return;
      }
      const { config } = await api.patch(at`/v0/topics/${topic}`, fields);
      known = config;
      asked.set(config);
      toast(`Changed: ${Object.keys(fields).join(", ")}.`);
      saved();
    },
  });
  return asked;
}
