/* A tag as people type it, as the API wants it: `invoice` is that tag, `invoice*` all that begin so. */

export const TAG_HINT = "A tag, or a beginning with * behind it.";

/* Null for no condition. */
export function matchOf(text) {
  const tag = text.trim();
  if (tag === "") return null;
  return tag.endsWith("*") ? ["tag", "Glob", tag] : ["tag", "Eq", tag];
}
