/* Which view an address names, and what its parts are. */

import { ROUTES } from "../routes.js";

/* `{ route, params }`, or null when no view is there. */
export function find(path) {
  const parts = split(path);
  for (const route of ROUTES) {
    const wanted = split(route.path);
    if (wanted.length !== parts.length) continue;
    const params = {};
    const fits = wanted.every((part, at) => {
      if (!part.startsWith(":")) return part === parts[at];
      params[part.slice(1)] = parts[at];
      return parts[at] !== "";
    });
    if (fits) return { route, params };
  }
  return null;
}

function split(path) {
  return path.split("/").slice(1).map(decoded);
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/* A path of this page that somebody may be sent back to; `/` when it leads elsewhere. */
export function safePath(text) {
  if (!text || !URL.canParse(text, location.origin)) return "/";
  const address = new URL(text, location.origin);
  return address.origin === location.origin && find(address.pathname) ? address.pathname + address.search : "/";
}
