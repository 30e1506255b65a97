/* Durations and sizes as people type them: "90d", "1h 30m", "500 ms", "64 MiB". */

const DURATION_MS = { ms: 1, s: 1000, sec: 1000, m: 60_000, min: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };
const SIZE_BYTES = {
  b: 1,
  k: 1024,
  kb: 1000,
  kib: 1024,
  m: 1024 ** 2,
  mb: 1000 ** 2,
  mib: 1024 ** 2,
  g: 1024 ** 3,
  gb: 1000 ** 3,
  gib: 1024 ** 3,
  t: 1024 ** 4,
  tb: 1000 ** 4,
  tib: 1024 ** 4,
};
const PART = /\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*/y;

/* Milliseconds; a number without a unit is that. NaN when it is no duration. */
export function parseDuration(text) {
  return parse(text, DURATION_MS);
}

/* Bytes. NaN when it is no size. */
export function parseBytes(text) {
  return parse(text, SIZE_BYTES);
}

/* So that it can be edited and means the same: 5400000 is "1h 30m". */
export function showDuration(ms) {
  const parts = [];
  let rest = ms;
  for (const unit of ["d", "h", "m", "s", "ms"]) {
    const many = Math.floor(rest / DURATION_MS[unit]);
    if (many > 0) parts.push(`${many}${unit}`);
    rest -= many * DURATION_MS[unit];
  }
  return parts.join(" ") || "0s";
}

/* The largest unit that says it exactly: 67108864 is "64 MiB". */
export function showBytes(bytes) {
  for (const unit of ["TiB", "GiB", "MiB", "KiB"]) {
    const size = SIZE_BYTES[unit.toLowerCase()];
    if (bytes >= size && bytes % size === 0) return `${bytes / size} ${unit}`;
  }
  return String(bytes);
}

function parse(text, units) {
  let total = 0;
  let at = 0;
  const given = String(text);
  if (given.trim() === "") return NaN;
  while (at < given.length) {
    PART.lastIndex = at;
    const found = PART.exec(given);
    if (found === null) return NaN;
    const [all, figures, unit] = found;
    const size = unit === "" ? 1 : units[unit.toLowerCase()];
    // A number without a unit stands alone.
    if (size === undefined || (unit === "" && all.length !== given.length)) return NaN;
    total += Number(figures) * size;
    at += all.length;
  }
  return Math.round(total);
}
