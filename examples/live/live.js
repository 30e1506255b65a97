/* A live topic on a page, over an EventSource or a WebSocket.
 *
 * How it works. A `Place` is how far the page has come: it moves with each event that was shown, and with nothing else.
 * A line (`EventSourceLine`, `WebSocketLine`) is a connection that begins at the place and tells the page what comes.
 * When it breaks, it begins again at the place, as often as it must. So nothing is missed and nothing is shown twice:
 * across a broken connection, a server that was killed, and a change from one kind of line to the other.
 *
 * A key travels in a header only. An EventSource cannot send one, so with a key the page asks for a stream token, which
 * opens this one stream for a short time. A WebSocket takes no token: in a browser it works where there are no keys.
 */

const ROWS_MAX = 1000;
const RETRY_MS_MIN = 250;
const RETRY_MS_MAX = 5000;
const PING_MS = 10_000;
const SILENCE_MS_MAX = 30_000;

const REASONS = {
  cap: "the topic keeps only so many",
  ttl: "they were too old",
  mixed: "the topic keeps only so many, and only for so long",
  from_seq_too_old: "they were gone before this page connected",
  recreated: "the topic was deleted and made anew",
  restart: "the server stopped before they were safe",
  damage: "they could not be read from the disk",
  source_trim: "they were gone before they could be forwarded",
};

/* How far the page has come in a topic. */
class Place {
  constructor() {
    this.seq = 0;
    this.cursor = null; // The id of the last event, once an event stream gave one: it also knows the topic's life.
  }

  moveTo(seq, cursor = null) {
    this.seq = seq;
    this.cursor = cursor;
  }
}

/* The server said no, and what it said; `status` is 0 when nobody answered. */
class Refusal extends Error {
  constructor(message, status, code = "", retryAfterMs = 0) {
    super(message);
    this.status = status;
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }

  get mayPass() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

class Server {
  constructor(url, key) {
    this.url = url.replace(/\/+$/, "");
    this.key = key;
  }

  async ask(path, body) {
    const headers = { "Content-Type": "application/json" };
    if (this.key) headers.Authorization = `Bearer ${this.key}`;
    let response;
    let answer;
    try {
      response = await fetch(this.url + path, { method: "POST", headers, body: JSON.stringify(body) });
      answer = await response.json();
    } catch {
      throw new Refusal("the server does not answer", 0);
    }
    if (response.ok) return answer;
    const retryAfterMs = Number(response.headers.get("Retry-After") ?? 0) * 1000;
    throw new Refusal(answer.error.message, response.status, answer.error.code, retryAfterMs);
  }

  write(topic, data, idempotencyKey) {
    const body = { records: [{ data }], idempotency_key: idempotencyKey };
    return this.ask(`/v0/topics/${encodeURIComponent(topic)}`, body);
  }
}

/* What both lines do: begin, and begin again later when it did not work or broke. */
class Line {
  constructor(server, topic, place, page) {
    this.server = server;
    this.topic = topic;
    this.place = place;
    this.page = page;
    this.over = false;
    this.failures = 0;
    this.timer = 0;
  }

  async start() {
    this.page.show("connecting", "connecting");
    try {
      await this.connect();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (error.mayPass) this.startLater(error.message, error.retryAfterMs);
      else this.stop(error.message, error.code);
    }
  }

  startLater(why, atLeastMs = 0) {
    if (this.over) return;
    this.disconnect();
    const backoffMs = Math.min(RETRY_MS_MIN * 2 ** this.failures++, RETRY_MS_MAX);
    this.page.show("waiting", `${why}; trying again`);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.start(), Math.max(backoffMs, atLeastMs));
  }

  stop(why, code = "") {
    this.close();
    this.page.show("stopped", why, code);
  }

  close() {
    this.over = true;
    clearTimeout(this.timer);
    this.disconnect();
  }

  opened() {
    this.failures = 0;
    this.page.show("catching-up", "catching up");
  }

  /* One event of the topic, whichever line brought it. */
  take(kind, event, cursor = null) {
    switch (kind) {
      case "record":
        this.page.addRecords(event.records);
        this.place.moveTo(event.to_seq, cursor);
        break;
      case "tombstone":
        this.page.addGap(event);
        this.place.moveTo(event.reason === "recreated" ? event.earliest_seq - 1 : event.gap_to, cursor);
        break;
      case "caught-up":
        this.page.show("live", "live");
        break;
      case "topic-deleted":
        this.page.addNotice("The topic was deleted.");
        this.place.moveTo(0);
        this.stop("the topic is gone", "topic_not_found");
        break;
    }
  }
}

/* A watch session and its stream. The browser reconnects by itself, and sends the id of the last event; only when the
 * server does not know the session any more, or is not ready, does the EventSource give up. Then a new session begins
 * behind that event. */
class EventSourceLine extends Line {
  async connect() {
    const { cursor, seq } = this.place;
    const start = cursor === null ? { from_seq: seq } : {};
    const wanted = { topics: { [this.topic]: start } };
    if (cursor !== null) wanted.cursor = cursor;
    const session = await this.server.ask("/v0/watch", wanted);
    let address = session.stream_url;
    if (this.server.key) address = (await this.server.ask("/v0/watch/token", { wid: session.wid })).stream_url;
    if (this.over) return;
    const source = (this.source = new EventSource(this.server.url + address));
    source.addEventListener("open", () => this.opened());
    for (const kind of ["record", "tombstone", "caught-up", "topic-deleted"]) {
      source.addEventListener(kind, (event) => this.take(kind, JSON.parse(event.data), event.lastEventId));
    }
    source.addEventListener("error", (event) => {
      // The server's own frames of that name have data, the browser's have none.
      if (event.data !== undefined) this.page.addNotice(JSON.parse(event.data).error);
      else if (source.readyState === EventSource.CLOSED) this.startLater("the stream has ended");
      else this.page.show("waiting", "the connection broke; trying again");
    });
  }

  disconnect() {
    this.source?.close();
  }

  write(data, idempotencyKey) {
    return this.server.write(this.topic, data, idempotencyKey);
  }
}

/* One connection for both ways. Here the place is the seq, and reconnecting is up to us. */
class WebSocketLine extends Line {
  async connect() {
    if (this.server.key) {
      throw new Refusal("a browser cannot send a key with a WebSocket; use EventSource", 401, "unauthorized");
    }
    this.answers = new Map();
    const socket = (this.socket = new WebSocket(`${this.server.url.replace(/^http/, "ws")}/v0/ws`));
    socket.addEventListener("open", () => {
      this.opened();
      this.heardMs = performance.now();
      this.pinging = setInterval(() => this.ping(), PING_MS);
      this.send({ op: "subscribe", request_id: "watch", topic: this.topic, from_seq: this.place.seq });
    });
    socket.addEventListener("message", (event) => this.receive(JSON.parse(event.data)));
    socket.addEventListener("close", () => {
      if (socket === this.socket) this.startLater("the connection broke");
    });
  }

  disconnect() {
    clearInterval(this.pinging);
    const socket = this.socket;
    this.socket = undefined;
    socket?.close();
    for (const { reject } of this.answers?.values() ?? []) reject(new Refusal("the connection broke", 0));
    this.answers?.clear();
  }

  send(command) {
    this.socket.send(JSON.stringify(command));
  }

  ping() {
    if (performance.now() - this.heardMs > SILENCE_MS_MAX) this.startLater("the server is silent");
    else this.send({ op: "ping" });
  }

  receive(message) {
    this.heardMs = performance.now();
    const waiting = this.answers.get(message.request_id);
    this.answers.delete(message.request_id);
    if (message.op === "ack") waiting?.resolve(message);
    else if (message.op !== "error") this.take(message.op.replaceAll("_", "-"), message);
    else if (waiting) waiting.reject(new Refusal(message.message, 400, message.code));
    else if (message.request_id === "watch") this.stop(message.message, message.code);
    else this.page.addNotice(message.message);
  }

  write(data, idempotencyKey) {
    // Before there is a topic there is nothing to watch, and so no connection.
    if (this.socket?.readyState !== WebSocket.OPEN) return this.server.write(this.topic, data, idempotencyKey);
    return new Promise((resolve, reject) => {
      this.answers.set(idempotencyKey, { resolve, reject });
      const records = [{ data }];
      const names = { request_id: idempotencyKey, idempotency_key: idempotencyKey };
      this.send({ op: "publish", ...names, topic: this.topic, records });
    });
  }
}

const LINES = { eventsource: EventSourceLine, websocket: WebSocketLine };

class Page {
  constructor() {
    this.watchForm = document.getElementById("watch");
    this.writeForm = document.getElementById("write");
    this.events = document.getElementById("events");
    this.state = document.getElementById("state");
    this.count = document.getElementById("count");
    this.written = document.getElementById("written");
    this.recordCount = 0;
    this.line = null;
    this.unanswered = { text: null, key: "" }; // A write that may have arrived: sent again, it has the same key.
    this.watchForm.addEventListener("submit", (event) => {
      event.preventDefault();
      this.watch();
    });
    this.watchForm.addEventListener("change", (event) => {
      // Another kind of line goes on where this one is.
      if (event.target.name === "via" && this.line !== null) this.goOn();
    });
    this.writeForm.addEventListener("submit", (event) => {
      event.preventDefault();
      this.write();
    });
  }

  /* Begin with a topic. */
  watch() {
    this.events.replaceChildren();
    this.recordCount = 0;
    this.tellCount();
    this.place = new Place();
    this.goOn();
  }

  /* Connect where the page stands, over what is chosen. */
  goOn() {
    const chosen = new FormData(this.watchForm);
    this.line?.close();
    const server = new Server(chosen.get("server"), chosen.get("key"));
    this.line = new LINES[chosen.get("via")](server, chosen.get("topic"), this.place, this);
    this.line.start();
  }

  async write() {
    if (this.line === null) this.watch();
    const line = this.line;
    const field = this.writeForm.elements.data;
    const text = field.value;
    if (this.unanswered.text !== text) this.unanswered = { text, key: makeKey() };
    this.tellWritten("sending");
    try {
      const done = await line.write(parsed(text), this.unanswered.key);
      this.unanswered = { text: null, key: "" };
      if (field.value === text) field.value = "";
      this.tellWritten(`written as ${done.last_seq}`);
      if (this.state.dataset.code === "topic_not_found") this.goOn();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.tellWritten(`not written: ${error.message}`, true);
    }
  }

  tellWritten(text, failed = false) {
    this.written.textContent = text;
    this.written.toggleAttribute("data-failed", failed);
  }

  show(state, text, code = "") {
    this.state.dataset.state = state;
    this.state.dataset.code = code;
    this.state.textContent = code === "topic_not_found" ? `${text}: write its first record` : text;
  }

  addRecords(records) {
    const rows = records.map((record) => {
      const row = document.createElement("li");
      row.className = "record";
      row.dataset.seq = record.$seq;
      row.append(
        filled("span", "seq", record.$seq),
        filled("time", "", new Date(record.$ts).toLocaleTimeString()),
        filled("code", "", JSON.stringify(record.data)),
      );
      return row;
    });
    this.recordCount += records.length;
    this.add(rows);
    this.tellCount();
  }

  addGap({ gap_from, gap_to, reason }) {
    const range = gap_from === gap_to ? `Record ${gap_from} is` : `Records ${gap_from} to ${gap_to} are`;
    const text = reason === "recreated" ? "What came before is lost" : `${range} lost`;
    const row = filled("li", "gap", `${text}: ${REASONS[reason] ?? reason}.`);
    Object.assign(row.dataset, { gapFrom: gap_from, gapTo: gap_to, reason });
    this.add([row]);
  }

  addNotice(text) {
    this.add([filled("li", "notice", text)]);
  }

  add(rows) {
    const atEnd = window.innerHeight + window.scrollY >= document.body.scrollHeight - 4;
    this.events.append(...rows);
    while (this.events.childElementCount > ROWS_MAX) this.events.firstElementChild.remove();
    if (atEnd) window.scrollTo(0, document.body.scrollHeight);
  }

  tellCount() {
    this.count.dataset.records = this.recordCount;
    const hidden = this.recordCount > ROWS_MAX ? `, the last ${ROWS_MAX} are shown` : "";
    this.count.textContent = this.recordCount ? `${this.recordCount} records${hidden}` : "no records yet";
  }
}

function filled(name, className, text) {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function makeKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/* The address of the page may fill in the form, all but the key, and then it begins by itself:
 * ?server=http://localhost:4000&topic=orders&via=websocket */
const page = new Page();
const asked = new URLSearchParams(location.search);
for (const name of ["server", "topic", "via"]) {
  if (asked.has(name)) page.watchForm.elements[name].value = asked.get(name);
}
if (asked.has("topic")) page.watch();
