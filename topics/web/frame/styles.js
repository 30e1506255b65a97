/* The style of a view, loaded when it is first opened and kept. */

import { h } from "../kit/dom.js";

const loaded = new Map();

/* One name, several, or none. */
export function useStyles(names) {
  return Promise.all([names ?? []].flat().map(load));
}

function load(name) {
  if (!loaded.has(name)) {
    const done = new Promise((resolve) => {
      const link = h("link", { rel: "stylesheet", href: `/web/style/${name}.css`, on: { load: resolve, error: resolve } });
      document.head.append(link);
    });
    loaded.set(name, done);
  }
  return loaded.get(name);
}
