/* The line that says that the server is away, since when, and that it is back. The figures that were last there stay, greyed. */

import { api, connection } from "../kit/api.js";
import { h, setText } from "../kit/dom.js";
import { clock } from "../kit/format.js";
import { icon } from "../kit/icons.js";

const ASK_MS = 2000;

export class AwayLine {
  constructor(place) {
    this.since = null;
    this.timer = 0;
    this.text = h("span");
    this.element = h("div", { class: "away", role: "alert", hidden: true }, icon("alert"), this.text);
    place.append(this.element);
    connection.addEventListener("away", (event) => this.gone(event.detail));
    connection.addEventListener("back", () => this.back());
  }

  gone(error) {
    if (this.since === null) {
      this.since = Date.now();
      this.element.hidden = false;
      document.documentElement.toggleAttribute("data-away", true);
    }
    const since = clock(this.since);
    const why = error.status === 0 ? `The server has not answered since ${since}.` : `Since ${since}: ${error.message}.`;
    setText(this.text, `${why} What you see is from before; it is asked again and again.`);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), ASK_MS);
  }

  /* A view may have nothing more to ask for; the line goes all the same when the server is there. */
  async ask() {
    try {
      await api.get("/readyz");
    } catch {
      // The next `away` plans the next look.
    }
  }

  back() {
    if (this.since === null) return;
    this.since = null;
    clearTimeout(this.timer);
    this.element.hidden = true;
    document.documentElement.toggleAttribute("data-away", false);
  }
}
