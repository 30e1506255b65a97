/* Making a router. A way around is refused by the server, and said as it goes. */

import { api, at } from "../../kit/api.js";
import { dialog } from "../../kit/dialog.js";
import { form } from "../../kit/form.js";
import { matchOf, TAG_HINT } from "../topic/match.js";

const GUARANTEES = [
  { value: "at_least_once", label: "at least once" },
  { value: "exactly_once", label: "exactly once – each copy says what it is a copy of" },
];

/* `isTaken(name)`: whether there is a router of this name. Gives the router that was made, or null. */
export function createRouter({ isTaken, source = "" }) {
  return dialog({
    title: "New router",
    wide: true,
    body: (close) =>
      form({
        fields: [
          { name: "source", label: "From", kind: "text", required: true, value: source, hint: "Each record that this topic gets is copied." },
          { name: "dest", label: "To", kind: "text", required: true, hint: "A topic that no other one is copied to." },
          { name: "name", label: "Name", kind: "text", hint: "Empty is from->to." },
          { name: "tag", label: "Only with the tag", kind: "text", hint: TAG_HINT },
          { name: "guarantee", label: "Guarantee", kind: "select", options: GUARANTEES, value: "at_least_once" },
          { name: "backfill", label: "Begin with the oldest record", kind: "flag", hint: "And not with the next one." },
          { name: "create_dest", label: "Make the destination if it is missing", kind: "flag", value: true },
          { name: "allow_cycle", label: "Records may come back", kind: "flag", hint: "Each goes around once." },
          { name: "preserve_node", label: "Copies keep their node", kind: "flag", value: true },
          { name: "preserve_tag", label: "Copies keep their tag", kind: "flag", value: true },
        ],
        submit: "Make the router",
        cancel: () => close(),
        onSubmit: async ({ name, tag, ...config }) => {
          const router = name || `${config.source}->${config.dest}`;
          if (isTaken(router)) throw beside("name", `There is a router ${router} already.`);
          const filter = matchOf(tag);
          try {
            close(await api.put(at`/v0/routers/${router}`, filter ? { ...config, filter } : config));
          } catch (error) {
            if (error.code !== "router_cycle") throw error;
            throw beside("allow_cycle", `${error.message}: ${[error.detail.cycle].flat().join(" → ")}`);
          }
        },
      }),
  });
}

function beside(field, message) {
  return Object.assign(new Error(message), { detail: { field } });
}
