/* Lists that the server gives page by page. */

import { api } from "./api.js";

/* All items of a list, up to `most`, as `{ items, isCut }`.
 *   name    of the list in the answer
 *   next    what the answer calls the place of the next page
 *   cursor  what the query calls it */
export async function allPages(path, { name, next = "next_cursor", cursor = "cursor", query = {}, most = 5000, signal }) {
  const items = [];
  let place = "";
  do {
    const page = await api.get(path, { query: { page_size: 1000, ...query, [cursor]: place }, signal });
    items.push(...page[name]);
    place = page[next] ?? "";
  } while (place && items.length < most);
  return { items: items.slice(0, most), isCut: Boolean(place) || items.length > most };
}
