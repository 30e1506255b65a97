/* Figures and times as people read them. What is not known is a dash. */

const UNKNOWN = "–";
const GROUPED = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });
const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/* 1234567 is "1,234,567". */
export function count(n) {
  return isNumber(n) ? GROUPED.format(n) : UNKNOWN;
}

/* 0.25 is "0.25/s", 1234.5 is "1,235/s". */
export function rate(n) {
  return isNumber(n) ? `${short(n)}/s` : UNKNOWN;
}

/* 1536 is "1.5 KiB". */
export function bytes(n) {
  if (!isNumber(n)) return UNKNOWN;
  let value = n;
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < BYTE_UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? GROUPED.format(value) : short(value)} ${BYTE_UNITS[unit]}`;
}

/* 0.4 is "0.4 ms", 90000 is "1 min 30 s": the two largest units. */
export function duration(ms) {
  if (!isNumber(ms)) return UNKNOWN;
  if (ms < 0) return `-${duration(-ms)}`;
  if (ms < SECOND_MS) return `${short(ms)} ms`;
  if (ms < MINUTE_MS) return `${short(ms / SECOND_MS)} s`;
  if (ms < HOUR_MS) return pair(ms, MINUTE_MS, "min", SECOND_MS, "s");
  if (ms < DAY_MS) return pair(ms, HOUR_MS, "h", MINUTE_MS, "min");
  return pair(ms, DAY_MS, "d", HOUR_MS, "h");
}

/* How long ago a time is, or how long until it: "12 s ago", "in 3 h". */
export function ago(ts, now = Date.now()) {
  if (!isNumber(ts) || ts === 0) return "never";
  const ms = now - ts;
  if (Math.abs(ms) < SECOND_MS) return "just now";
  return ms > 0 ? `${coarse(ms)} ago` : `in ${coarse(-ms)}`;
}

/* "2026-11-15 22:01:29", in the time of whoever looks. */
export function when(ts) {
  if (!isNumber(ts) || ts === 0) return UNKNOWN;
  const date = new Date(ts);
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock(ts)}`;
}

/* "22:01:29". */
export function clock(ts) {
  const date = new Date(ts);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/* 0.123 is "12.3%". */
export function percent(x) {
  return isNumber(x) ? `${short(100 * x)}%` : UNKNOWN;
}

/* "1 topic", "2 topics". */
export function counted(n, noun, nouns = `${noun}s`) {
  return `${count(n)} ${n === 1 ? noun : nouns}`;
}

const BY_UNIT = {
  per_s: rate,
  bytes_per_s: (n) => (isNumber(n) ? `${bytes(n)}/s` : UNKNOWN),
  ms: duration,
  count,
  bytes,
  share: percent,
};

/* A value of a series, by the unit that `GET /v0/series` names. */
export function inUnit(value, unit) {
  return (BY_UNIT[unit] ?? count)(value);
}

function isNumber(n) {
  return typeof n === "number" && Number.isFinite(n);
}

/* Three figures that count. */
function short(n) {
  const size = Math.abs(n);
  if (size >= 100) return GROUPED.format(n);
  return String(Number(n.toFixed(size >= 10 ? 1 : 2)));
}

function pair(ms, large, largeName, small, smallName) {
  const whole = Math.floor(ms / large);
  const rest = Math.floor((ms % large) / small);
  return rest ? `${whole} ${largeName} ${rest} ${smallName}` : `${whole} ${largeName}`;
}

function coarse(ms) {
  if (ms < MINUTE_MS) return `${Math.floor(ms / SECOND_MS)} s`;
  if (ms < HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min`;
  if (ms < DAY_MS) return `${Math.floor(ms / HOUR_MS)} h`;
  return `${Math.floor(ms / DAY_MS)} d`;
}

function two(n) {
  return String(n).padStart(2, "0");
}
