/* Dialogs: questions that have to be answered before anything else. Escape closes them, and the focus goes back. */

import { h, uniqueId } from "./dom.js";
import { iconButton } from "./state.js";

/* Show a dialog, and give what it was closed with; null when it was left.
 *   body     text, a node, or a function of `close` that makes one: for a form that closes it with `close(value)`
 *   actions  [{ label, kind, value, run }]: buttons. `run` may be async; what it throws is shown, and the dialog stays.
 *            It is closed with what `run` gives, or with `value` */
export function dialog({ title, body, actions = [], wide = false }) {
  return new Promise((resolve) => {
    let result = null;
    const id = uniqueId("dialog");
    const close = (value = null) => {
      result = value;
      element.close();
    };
    const problem = h("p", { class: "problem", role: "alert", hidden: true });
    const content = typeof body === "function" ? body(close) : typeof body === "string" ? h("p", null, body) : body;
    const buttons = actions.map((each) => actionButton(each, close, problem));
    const element = h(
      "dialog",
      { class: wide && "wide", "aria-labelledby": id },
      h(
        "header",
        { class: "dialog-head" },
        h("h2", { id }, title),
        iconButton("close", "Close", () => close()),
      ),
      h("div", { class: "dialog-body" }, content, problem),
      buttons.length > 0 && h("footer", { class: "dialog-actions" }, buttons),
    );
    element.addEventListener("close", () => {
      element.remove();
      resolve(result);
    });
    element.addEventListener("click", (event) => {
      // Beside the dialog is behind it.
      if (event.target === element) close();
    });
    document.body.append(element);
    element.showModal();
    element.querySelector("[autofocus], .dialog-body :is(input, select, textarea)")?.focus();
  });
}

/* Whether somebody wants what a button would do. `body` says what will happen, with the count; with `word`, the name of
 * what it happens to has to be typed. */
export async function confirm({ title, body = "", word = null, action = "Go on", danger = false }) {
  const kind = danger ? "danger" : "primary";
  const said = await dialog({
    title,
    body: (close) => {
      const go = h("button", { type: "submit", class: kind, disabled: word !== null }, action);
      const send = (event) => {
        event.preventDefault();
        if (!go.disabled) close(true);
      };
      return h(
        "form",
        { class: "confirm", on: { submit: send } },
        typeof body === "string" ? h("p", null, body) : body,
        word !== null && wordField(word, go),
        h(
          "div",
          { class: "dialog-actions" },
          h("button", { type: "button", autofocus: word === null, on: { click: () => close(false) } }, "Cancel"),
          go,
        ),
      );
    },
  });
  return said === true;
}

function wordField(word, go) {
  const input = h("input", { type: "text", autocomplete: "off", spellcheck: "false", autocapitalize: "off" });
  input.addEventListener("input", () => {
    go.disabled = input.value !== word;
  });
  return h("label", { class: "field" }, h("span", null, "Type ", h("code", null, word), " to go on"), input);
}

function actionButton({ label, kind = "plain", value = null, run = null }, close, problem) {
  const click = async () => {
    if (run === null) {
      close(value);
      return;
    }
    element.disabled = true;
    problem.hidden = true;
    try {
      close((await run()) ?? value);
    } catch (error) {
      problem.textContent = error.message;
      problem.hidden = false;
    } finally {
      element.disabled = false;
    }
  };
  const element = h("button", { type: "button", class: kind, on: { click } }, label);
  return element;
}
