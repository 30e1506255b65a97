/* The frame of sign-in and set-up: a small card in the middle of an otherwise empty page. */

import { h } from "../../kit/dom.js";
import { countDown } from "./waiting.js";

export function card(title, about, ...children) {
  return h("div", { class: "door" }, h("h1", null, title), about && h("p", { class: "about" }, about), children);
}

/* Do what a form of the door asks for. Whoever has to wait for the next attempt sees how long, and the form waits too. */
export async function knock(place, signal, work) {
  try {
    return await work();
  } catch (error) {
    if (error.status !== 429 || !error.retryAfterMs) throw error;
    await countDown(place, error, signal);
    return null;
  }
}
