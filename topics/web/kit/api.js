/* The server's public API, with the session of whoever signed in.
 *
 * A request that changes something carries the CSRF token. A 401 is answered by refreshing the session once, for all
 * requests that wait, and by asking again. `connection` tells whether the server is there:
 *   away        nobody answers, or the server is not ready; `event.detail` is the error
 *   back        it answers again
 *   signed-out  there is no session that could be refreshed */

import { parseJson } from "./exact.js";

const SAFE = new Set(["GET", "HEAD"]);
const CSRF_COOKIE = "topics_csrf";
const REFRESH = "/v1/auth/refresh";
/* A 401 here is an answer, not an end of a session. */
const OWN_ANSWER = new Set(["/v1/auth/login", "/v1/auth/setup", "/v1/auth/link", REFRESH, "/v1/auth/logout"]);
const AWAY_CODES = new Set(["not_ready", "shutting_down"]);

export const connection = new EventTarget();

/* What the server said no with. `status` is 0 when nobody answered. */
export class ApiError extends Error {
  constructor(status, code, message, detail = {}, retryAfterMs = 0) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.code = code;
    this.detail = detail;
    this.retryAfterMs = retryAfterMs;
  }

  /* Whether the same request may do later what it did not do now. */
  get mayPass() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }

  get isAway() {
    return this.status === 0 || AWAY_CODES.has(this.code);
  }
}

export const api = {
  get: (path, options) => ask("GET", path, undefined, options),
  post: (path, body, options) => ask("POST", path, body, options),
  put: (path, body, options) => ask("PUT", path, body, options),
  patch: (path, body, options) => ask("PATCH", path, body, options),
  remove: (path, body, options) => ask("DELETE", path, body, options),
};

/* A path whose parts are escaped: at`/v0/topics/${name}/diff`. */
export function at(texts, ...parts) {
  return texts.reduce((path, text, index) => path + encodeURIComponent(parts[index - 1]) + text);
}

/* A path with a query; what is null, undefined or empty is left out. */
export function withQuery(path, query) {
  const given = query instanceof URLSearchParams ? [...query] : Object.entries(query ?? {});
  const kept = given.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return kept.length ? `${path}?${new URLSearchParams(kept)}` : path;
}

async function ask(method, path, body, { query, signal } = {}) {
  const address = withQuery(path, query);
  let answer = await send(method, address, body, signal);
  if (answer.status === 401 && !OWN_ANSWER.has(path)) {
    if (await refreshed()) answer = await send(method, address, body, signal);
    if (answer.status === 401) tell("signed-out");
  }
  return read(answer);
}

async function send(method, address, body, signal) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (!SAFE.has(method)) headers["X-CSRF-Token"] = cookie(CSRF_COOKIE);
  try {
    return await fetch(address, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
      credentials: "same-origin",
      cache: "no-store",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw gone(new ApiError(0, "away", "The server does not answer."));
  }
}

async function read(answer) {
  let text;
  try {
    text = await answer.text();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw gone(new ApiError(0, "away", "The connection broke in the middle of an answer."));
  }
  const isJson = (answer.headers.get("Content-Type") ?? "").startsWith("application/json");
  const value = isJson && text ? parseJson(text) : text;
  if (answer.ok) {
    tell("back");
    return value;
  }
  const { code = "", reason, message = `The server answered ${answer.status}.`, detail } = value?.error ?? {};
  const retryAfterMs = Number(answer.headers.get("Retry-After") ?? 0) * 1000;
  const error = new ApiError(answer.status, reason ?? code, message, detail ?? {}, retryAfterMs);
  if (error.isAway) throw gone(error);
  tell("back");
  throw error;
}

let refreshing = null;

/* Whether the session goes on. All who ask meanwhile wait for the same answer: a refresh token is good once. */
function refreshed() {
  if (!cookie(CSRF_COOKIE)) return Promise.resolve(false);
  refreshing ??= send("POST", REFRESH, {})
    .then((answer) => answer.ok)
    .finally(() => {
      refreshing = null;
    });
  return refreshing;
}

function cookie(name) {
  const pair = document.cookie.split("; ").find((each) => each.startsWith(`${name}=`));
  return pair ? pair.slice(name.length + 1) : "";
}

function gone(error) {
  tell("away", error);
  return error;
}

function tell(kind, detail = null) {
  connection.dispatchEvent(new CustomEvent(kind, { detail }));
}
