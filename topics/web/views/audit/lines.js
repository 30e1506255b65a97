/* The lines of the audit log that are shown: the newest are asked for again and again, older ones when somebody wants
 * them, and both make one list without a hole in it. */

export class Lines {
  constructor() {
    /* The newest first. */
    this.entries = [];
    /* Where the next older page begins; empty when there is none. */
    this.cursor = "";
  }

  takeNewest({ entries, next_cursor: cursor = "" }) {
    const known = new Set(this.entries.map((entry) => entry.seq));
    const fresh = entries.filter((entry) => !known.has(entry.seq));
    // When none of a page is known and there is more behind it, something may lie between: begin again.
    const joins = this.entries.length > 0 && (fresh.length < entries.length || !cursor);
    if (joins) {
      this.entries = [...fresh, ...this.entries];
    } else if (this.entries.length === 0 || entries.length > 0) {
      this.entries = entries;
      this.cursor = cursor;
    }
  }

  takeOlder({ entries, next_cursor: cursor = "" }) {
    this.entries = [...this.entries, ...entries];
    this.cursor = cursor;
  }
}
