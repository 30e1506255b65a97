/* What goes on: work that is repeated while somebody looks, and records as they come. Both end with their signal. */

import { api, ApiError, connection } from "./api.js";
import { parseJson } from "./exact.js";

const BACKOFF_MS_MAX = 30_000;
const RETRY_MS_MIN = 500;
const RETRY_MS_MAX = 15_000;
const EVENTS = ["record", "tombstone", "caught-up", "topic-deleted"];

/* Call `work(signal)` at once, and again `ms` after each time it is done, while the page is visible. When it fails, it is
 * called again later and later, at once when the server is back; `failed(error)` is told. Gives a promise of the first
 * time, which has `now()` to call out of turn: `const poll = every(…); await poll; …; poll.now()`. */
export function every(ms, signal, work, { failed } = {}) {
  let failures = 0;
  let timer = 0;
  let running = null;
  let again = false;

  async function once() {
    clearTimeout(timer);
    try {
      await work(signal);
      failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
      failed?.(error);
      throw error;
    } finally {
      running = null;
      if (again) now();
      else plan();
    }
  }

  function plan() {
    if (signal.aborted || document.hidden) return;
    timer = setTimeout(now, Math.min(ms * 2 ** failures, Math.max(ms, BACKOFF_MS_MAX)));
  }

  function now() {
    if (signal.aborted) return Promise.resolve();
    if (running !== null) {
      again = true;
      return running;
    }
    again = false;
    running = once();
    // Whoever does not wait for it need not hear of it: `failed` did.
    running.catch(() => {});
    return running;
  }

  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : now()), { signal });
  connection.addEventListener("back", () => failures > 0 && running === null && now(), { signal });
  signal.addEventListener("abort", () => clearTimeout(timer));
  return Object.assign(now(), { now });
}

/* Follow topics over server-sent events, from where `places` says: `{ orders: { tail: true }, "jobs#2": { from_seq: 0 } }`,
 * as the body of `POST /v0/watch` has it. Calls, each of which may be left out:
 *   record(record, topic, event)   each record; `event` has `to_seq`, `head_seq`, `partition`
 *   tombstone(gap, topic)          records that are lost: `reason`, `gap_from`, `gap_to`
 *   caughtUp(topic)                all there was has come
 *   deleted(topic)                 the topic is gone
 *   dropped(why)                   the line broke; it is opened again behind the last event
 *   refused(error)                 the server does not let us: it is not tried again
 * `options` goes into the body as well: `include_tags`, `match`, `node` … */
export function follow(places, signal, handlers, options = {}) {
  let source = null;
  let cursor = null;
  let failures = 0;
  let timer = 0;

  async function open() {
    const body = { topics: places, include_tags: true, ...options };
    if (cursor !== null) body.cursor = cursor;
    try {
      const session = await api.post("/v0/watch", body, { signal });
      if (!signal.aborted) listen(session.stream_url);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && !error.mayPass) handlers.refused?.(error);
      else later(error.message, error.retryAfterMs);
    }
  }

  function listen(address) {
    source = new EventSource(address);
    source.addEventListener("open", () => {
      failures = 0;
    });
    for (const kind of EVENTS) source.addEventListener(kind, (event) => take(kind, event));
    source.addEventListener("error", (event) => {
      // The server's own frames of that name have data, the browser's have none.
      if (event.data !== undefined) handlers.dropped?.(JSON.parse(event.data).error);
      else if (source.readyState === EventSource.CLOSED) later("the stream has ended");
      else handlers.dropped?.("the connection broke");
    });
  }

  function take(kind, message) {
    if (signal.aborted) return;
    const event = parseJson(message.data);
    if (message.lastEventId) cursor = message.lastEventId;
    if (kind === "record") for (const record of event.records) handlers.record?.(record, event.topic, event);
    else if (kind === "tombstone") handlers.tombstone?.(event, event.topic);
    else if (kind === "caught-up") handlers.caughtUp?.(event.topic);
    else handlers.deleted?.(event.topic);
  }

  function later(why, atLeastMs = 0) {
    if (signal.aborted) return;
    source?.close();
    handlers.dropped?.(why);
    const backoffMs = Math.min(RETRY_MS_MIN * 2 ** failures, RETRY_MS_MAX);
    failures += 1;
    timer = setTimeout(open, Math.max(backoffMs, atLeastMs));
  }

  signal.addEventListener("abort", () => {
    clearTimeout(timer);
    source?.close();
  });
  open();
}
