/* JSON whose whole numbers stay as they were sent. What is too large for a number of JavaScript is a BigInt, and is written out
 * again figure by figure. Priorities and ids have 64 bits: rounded, they would be somebody else's. */

const LONG = /[:,[\s]-?\d{16,}/;
const WHOLE = /^-?\d+$/;

export function parseJson(text) {
  // Looking at each value takes time, and hardly any answer needs it.
  return LONG.test(` ${text}`) ? JSON.parse(text, exact) : JSON.parse(text);
}

/* `source` is how a value is written; a browser that does not tell rounds, as it always did. */
function exact(_, value, { source = "" } = {}) {
  return typeof value === "number" && !Number.isSafeInteger(value) && WHOLE.test(source) ? BigInt(source) : value;
}

Object.defineProperty(BigInt.prototype, "toJSON", {
  value() {
    return JSON.rawJSON ? JSON.rawJSON(this.toString()) : Number(this);
  },
});
