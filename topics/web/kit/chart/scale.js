/* From values to places in a drawing: round figures for ticks, round moments for times. */

const STEPS = [1, 2, 5, 10];
const BINARY_STEPS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
const SECOND_MS = 1000;
const TIME_STEPS_MS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400].map(
  (seconds) => seconds * SECOND_MS,
);

/* What is counted has no halves. */
const WHOLE = new Set(["count", "bytes", "bytes_per_s"]);

/* Ticks from nought to at least `most`, about `wanted` of them. Bytes are counted in powers of two. */
export function ticks(most, wanted, unit) {
  const rough = Math.max(most / wanted, WHOLE.has(unit) ? 1 : Number.MIN_VALUE);
  const binary = unit.startsWith("bytes");
  const base = binary ? 1024 : 10;
  const power = base ** Math.floor(Math.log(rough) / Math.log(base));
  const step = power * (binary ? BINARY_STEPS : STEPS).find((each) => each * power >= rough);
  const count = Math.ceil(most / step - 1e-9);
  return Array.from({ length: count + 1 }, (_, index) => index * step);
}

/* Moments between two times at which a person would put a mark. */
export function timeTicks(from, to, wanted) {
  const span = to - from;
  const step = TIME_STEPS_MS.find((each) => span / each <= wanted) ?? TIME_STEPS_MS.at(-1);
  const offset = new Date(from).getTimezoneOffset() * 60 * SECOND_MS;
  const first = Math.ceil((from - offset) / step) * step + offset;
  const found = [];
  for (let at = first; at <= to; at += step) found.push(at);
  return found;
}

/* The path of a line through points; a null lifts the pen. Of a point between two nulls there is a dot. */
export function path(xs, ys) {
  let text = "";
  let down = false;
  for (let index = 0; index < xs.length; index += 1) {
    const y = ys[index];
    if (y === null) {
      down = false;
      continue;
    }
    text += `${down ? "L" : "M"}${xs[index].toFixed(1)} ${y.toFixed(1)}`;
    if (!down && (ys[index + 1] ?? null) === null) text += "h0.1";
    down = true;
  }
  return text;
}

/* The largest of all values of several series; 0 when there is none. */
export function largest(lists) {
  let most = 0;
  for (const list of lists) for (const value of list) if (value !== null && value > most) most = value;
  return most;
}
