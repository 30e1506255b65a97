/* Who looks at the page: what `GET /v1/auth/me` said, and what they may do. Whoever signs out does so in all tabs. */

import { api, connection } from "../kit/api.js";

const CHANNEL = "topics-session";
const SIGNED_OUT = "signed-out";

export class Person {
  constructor() {
    this.known = null;
    /* Told whenever it may be somebody else. */
    this.changes = new EventTarget();
    this.otherTabs = new BroadcastChannel(CHANNEL);
    this.otherTabs.addEventListener("message", () => connection.dispatchEvent(new CustomEvent(SIGNED_OUT)));
    connection.addEventListener(SIGNED_OUT, () => this.forget());
  }

  /* What the server says, asked for once. An `ApiError` with status 401 when nobody has signed in. */
  async ask(signal) {
    if (this.known === null) {
      const said = await api.get("/v1/auth/me", { signal });
      this.known = { ...said, may: (scope) => said.scopes.includes(scope) };
      this.changed();
    }
    return this.known;
  }

  async signOut() {
    await api.post("/v1/auth/logout", {});
    this.otherTabs.postMessage(SIGNED_OUT);
    connection.dispatchEvent(new CustomEvent(SIGNED_OUT));
  }

  forget() {
    this.known = null;
    this.changed();
  }

  changed() {
    this.changes.dispatchEvent(new Event("change"));
  }
}
