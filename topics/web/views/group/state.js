/* How a group stands in one word, the same in the list and on its own page. */

import { badge } from "../../kit/state.js";

export function groupState({ paused, lag, consumers }) {
  if (paused) return badge("paused", "warning");
  if (lag === 0) return badge("caught up", "ok");
  return consumers === 0 ? badge("no consumers", "warning") : badge("working", "ok");
}
