/* All topics there are, loaded page by page in the background, kept up to date where somebody looks.
 *
 * A page is what one request gave: it begins behind a cursor and can be asked for again. What is seen lies in a few pages,
 * whatever it is sorted by, so that a hundred thousand topics cost no more to keep fresh than a thousand. */

import { api } from "../../kit/api.js";

const PAGE_SIZE = 1000;
const REFRESHED_MAX = 3;
const SORTS = {
  topic: (row) => row.topic,
  type: (row) => row.type,
  count: (row) => row.count,
  bytes: (row) => row.bytes,
  records_per_s: (row) => row.records_per_s,
  last_write_ts: (row) => row.last_write_ts ?? 0,
};

export class Catalogue {
  constructor(changed) {
    this.changed = changed;
    /* By name. */
    this.topics = new Map();
    /* Where each page begins, and what it held when it was last asked for. */
    this.pages = [];
    this.isWhole = false;
    this.search = "";
    this.kind = "";
    this.sort = { name: "topic", descending: false };
    /* Names that fit the search, in the order of the sort. */
    this.shown = [];
  }

  /* Load all pages, one after the other. */
  async load(signal) {
    let cursor = "";
    do {
      const page = { cursor, names: [] };
      cursor = await this.ask(page, signal);
      this.pages.push(page);
      this.isWhole = !cursor;
      this.arrange();
      this.changed();
    } while (cursor);
  }

  async ask(page, signal) {
    const query = { page_size: PAGE_SIZE, cursor: page.cursor };
    const { topics, next_cursor: next = "" } = await api.get("/v0/topics", { query, signal });
    const names = topics.map((row) => row.topic);
    const here = new Set(names);
    for (const gone of page.names.filter((name) => !here.has(name))) this.topics.delete(gone);
    for (const row of topics) this.topics.set(row.topic, row);
    page.names = names;
    return next;
  }

  /* Ask again for what these topics are in, the pages in which most of them are first. */
  async refresh(names, signal) {
    const wanted = new Set(names);
    const pages = this.pages
      .map((page) => ({ page, seen: page.names.filter((name) => wanted.has(name)).length }))
      .filter(({ seen }) => seen > 0 || this.pages.length === 1)
      .sort((one, other) => other.seen - one.seen)
      .slice(0, REFRESHED_MAX);
    for (const { page } of pages) {
      const next = await this.ask(page, signal);
      // What came since lies behind the last page, or in it.
      if (next && page === this.pages.at(-1)) this.pages.push({ cursor: next, names: [] });
    }
    this.arrange();
    this.changed();
  }

  /* While not all are here, the server finds what fits. */
  async look(signal) {
    if (this.isWhole || !this.search) return;
    const { topics } = await api.get("/v0/topics", { query: { contains: this.search, type: this.kind, page_size: 100 }, signal });
    for (const row of topics) this.topics.set(row.topic, row);
    this.arrange();
    this.changed();
  }

  row(index) {
    return this.topics.get(this.shown[index]) ?? null;
  }

  arrange() {
    const search = this.search.toLowerCase();
    const fits = ({ topic, type }) => (!this.kind || type === this.kind) && (!search || topic.toLowerCase().includes(search));
    const value = SORTS[this.sort.name];
    const sign = this.sort.descending ? -1 : 1;
    const compare = (one, other) => {
      const [first, second] = [value(one), value(other)];
      if (first !== second) return first < second ? -sign : sign;
      return one.topic < other.topic ? -1 : 1;
    };
    this.shown = [...this.topics.values()].filter(fits).sort(compare).map((row) => row.topic);
  }
}
