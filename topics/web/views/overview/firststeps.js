/* What to try on a server that has nothing yet. */

import { empty } from "../../kit/empty.js";

export function firstSteps() {
  return empty({
    title: "There is no topic yet",
    name: "topics",
    text: "A topic is there once something is written to it. Try, in a terminal:",
    commands: [
      `curl ${location.origin}/v0/topics/orders --json '{"records": [{"data": {"sku": "A1"}}]}'`,
      `topics tail orders --url ${location.origin}`,
    ],
  });
}
