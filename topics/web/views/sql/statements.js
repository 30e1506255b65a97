/* A text of statements, as far as a page has to understand it: where each begins and ends. What they mean is the server's. */

const SKIPS = [
  /--[^\n]*/y,
  /\/\*[^]*?(?:\*\/|$)/y,
  /'(?:[^']|'')*(?:'|$)/y,
  /"(?:[^"]|"")*(?:"|$)/y,
  /`(?:[^`]|``)*(?:`|$)/y,
];
const COMMENTS = /^(?:\s+|--[^\n]*(?:\n|$)|\/\*[^]*?(?:\*\/|$))*/;
const CANNOT_BE_UNDONE = /^(?:DROP|CLEAR|UNREGISTER|RESET)\b/i;
const EXPLAIN = "EXPLAIN ";

/* `[{ start, text }]`, where `start` is how far into the whole the statement begins; comments before it are left out. */
export function statements(whole) {
  const found = [];
  let start = 0;
  for (let at = 0; at <= whole.length; at += 1) {
    at = skipped(whole, at);
    if (at < whole.length && whole[at] !== ";") continue;
    const piece = whole.slice(start, at);
    const lead = COMMENTS.exec(piece)[0].length;
    if (lead < piece.length) found.push({ start: start + lead, text: piece.slice(lead).trimEnd() });
    start = at + 1;
  }
  return found;
}

/* Those that take something away for good. */
export function lastWords(whole) {
  return statements(whole).filter(({ text }) => CANNOT_BE_UNDONE.test(text)).map(({ text }) => text);
}

/* The same statements to be explained, and a function from a place in the new text to that in the old one. */
export function explained(whole) {
  let text = whole;
  const places = statements(whole).filter((each) => !/^EXPLAIN\b/i.test(each.text));
  for (const { start } of [...places].reverse()) text = text.slice(0, start) + EXPLAIN + text.slice(start);
  const back = (place) => {
    let shift = 0;
    for (const { start } of places) if (place - shift > start) shift += Math.min(EXPLAIN.length, place - shift - start);
    return place - shift;
  };
  return { text, back };
}

/* How far into a text a line and a column are, both counted from 1. */
export function offsetOf(text, line, column) {
  const lines = text.split("\n").slice(0, line - 1);
  return lines.reduce((sum, each) => sum + each.length + 1, 0) + column - 1;
}

/* The line and the column of a place in a text. */
export function placeOf(text, offset) {
  const before = text.slice(0, offset).split("\n");
  return { line: before.length, column: before.at(-1).length + 1 };
}

function skipped(whole, from) {
  for (let at = from; ; ) {
    const skip = SKIPS.map((pattern) => matchAt(pattern, whole, at)).find((length) => length > 0);
    if (!skip) return at;
    at += skip;
  }
}

function matchAt(pattern, whole, at) {
  pattern.lastIndex = at;
  return pattern.exec(whole)?.[0].length ?? 0;
}
