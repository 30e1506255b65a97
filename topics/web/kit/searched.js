/* A list that is searched by the beginning of a name. The server searches, and is asked again and again; as many as can be
 * shown are shown, and a line says when there are more. */

import { h } from "./dom.js";
import { count } from "./format.js";
import { every } from "./live.js";
import { allPages } from "./pages.js";
import { toolbar } from "./state.js";

const SHOWN_MAX = 500;
const REFRESH_MS = 3000;

/* `what` begins so, for example "Names"; `list` is a table; `pages` says how the answer names things, see `allPages`. Gives an
 * element with `begin(signal)`, which gives a promise of the first answer. */
export function searched({ what, list, path, pages }) {
  const label = `${what} that begin with`;
  const search = h("input", { type: "search", placeholder: `${label} …`, "aria-label": label, autocomplete: "off" });
  const cut = h("p", { class: "note", role: "status", hidden: true }, `Only the first ${count(SHOWN_MAX)} are shown: say how they begin.`);
  const element = h("div", { class: "searched" }, toolbar(search), cut, list);

  function begin(signal) {
    const poll = every(REFRESH_MS, signal, async () => {
      const asked = search.value.trim();
      const found = await allPages(path, { ...pages, query: { prefix: asked, page_size: SHOWN_MAX }, most: SHOWN_MAX, signal });
      // Somebody has typed on meanwhile: the next answer is theirs.
      if (asked !== search.value.trim()) return;
      cut.hidden = !found.isCut;
      list.update(found.items);
    });
    search.addEventListener("input", () => poll.now(), { signal });
    return poll;
  }

  return Object.assign(element, { begin });
}
