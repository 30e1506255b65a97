/* The words that the editor completes: names of topics, tables and columns as the server has them, and those of the language. */

import { api } from "../../kit/api.js";

const SYSTEM = ["topics", "partitions", "topic_routes", "tables", "pipelines", "topic_offsets", "groups", "queues", "heaps", "metrics"];
const RECORD_COLUMNS = ["topic", "partition", "seq", "ts", "node", "tag", "meta", "data"];
const TOPICS_MAX = 2000;
const PLAIN_NAME = /^[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*$/;
const LANGUAGE = (
  "SELECT FROM WHERE GROUP BY ORDER LIMIT HAVING JOIN LEFT ON AS AND OR NOT NULL IN LIKE BETWEEN CASE WHEN THEN ELSE END DISTINCT WITH " +
  "COUNT SUM MIN MAX AVG CREATE TOPIC ALTER DROP CLEAR INSERT INTO VALUES PARTITION PARTITIONS ALIAS SHOW TOPICS GROUPS ROUTES TABLES PIPELINES " +
  "DESCRIBE EXPLAIN CONSUME ACK NACK EXTEND PAUSE RESUME RESET REGISTER UNREGISTER TABLE PIPELINE SOURCE STREAM MERGE APPEND EARLIEST LATEST OFFSET TIMESTAMP RETENTION CONSUMER START"
).split(" ");

/* `[{ word, about }]`. What cannot be had is left out: completing is a help, not a need. */
export async function vocabulary(signal) {
  const known = [...LANGUAGE.map((word) => ({ word, about: "" })), ...RECORD_COLUMNS.map((word) => ({ word, about: "column of a topic" }))];
  try {
    const sql = SYSTEM.map((name) => `SELECT * FROM system.${name} LIMIT 0`).join("; ");
    const { results } = await api.post("/v0/sql", { sql: `${sql}; SELECT name, type FROM system.topics ORDER BY name LIMIT ${TOPICS_MAX}` }, { signal });
    SYSTEM.forEach((name, at) => {
      known.push({ word: `system.${name}`, about: "system table" });
      for (const column of results[at].columns) known.push({ word: column.name, about: `${column.type.toLowerCase()} of system.${name}` });
    });
    for (const [name, type] of results.at(-1).rows) known.push({ word: quoted(name), about: type });
  } catch (error) {
    if (signal.aborted) throw error;
  }
  return unique(known);
}

/* As many as fit that begin with what was typed, the shortest first. */
export function matching(words, typed, most) {
  const wanted = typed.toLowerCase();
  const fits = words.filter(({ word }) => word.toLowerCase().replace(/^"/, "").startsWith(wanted) && word.toLowerCase() !== wanted);
  return fits.sort((one, other) => one.word.length - other.word.length || one.word.localeCompare(other.word)).slice(0, most);
}

function quoted(name) {
  return PLAIN_NAME.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
}

function unique(known) {
  const found = new Map();
  for (const each of known) {
    const before = found.get(each.word);
    if (before && each.about && !before.about.includes(each.about)) before.about = [before.about, each.about].filter(Boolean).join(", ");
    if (!before) found.set(each.word, { ...each });
  }
  return [...found.values()];
}
