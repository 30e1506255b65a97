/* A form made of a list of fields. What is wrong stands beside the field that it is about, whether the page or the server
 * found it; all else the server says stands at the end.
 *
 *   fields    [{ name, label, kind, value, hint, required, options, min, max, placeholder, disabled, autocomplete,
 *             autofocus }]; kinds are in `fields.js`: text, email, password, number, duration (ms), bytes, select, flag,
 *             area, json, tags.
 *             An empty number, duration, size or JSON reads as null. A string in the list stands above those that follow
 *   submit    the label of the button
 *   kind      of the button: primary or danger
 *   cancel    what to do when it is left; without, there is no such button
 *   onSubmit  async (values) => …: what it throws is shown, an `ApiError` beside the field that `detail.field` names
 * Gives an element with `values()`, `set(values)`, `fail(error)` and `field(name)`, the input. */

import { h, setText, uniqueId } from "./dom.js";
import { FieldError, KINDS } from "./fields.js";

export function form({ fields, submit = "Save", kind = "primary", cancel = null, onSubmit }) {
  const part = (text) => h("p", { class: "form-part" }, text);
  const lines = fields.map((field) => (typeof field === "string" ? part(field) : fieldLine(field)));
  const named = new Map(lines.filter((line) => line.control).map((line) => [line.control.name, line.control]));
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const send = h("button", { type: "submit", class: kind }, submit);
  const leave = cancel && h("button", { type: "button", on: { click: () => cancel() } }, "Cancel");
  const element = h(
    "form",
    { class: "form", novalidate: true, on: { submit: (event) => sent(event) } },
    lines.map((line) => line.element ?? line),
    problem,
    h("div", { class: "form-actions" }, leave, send),
  );

  function values() {
    const read = {};
    let first = null;
    for (const [name, control] of named) {
      try {
        read[name] = control.read();
        control.complain("");
      } catch (error) {
        if (!(error instanceof FieldError)) throw error;
        control.complain(error.message);
        first ??= control;
      }
    }
    if (first !== null) {
      first.input.focus();
      throw new FieldError("Some fields need another look.");
    }
    return read;
  }

  function fail(error) {
    const control = controlOf(error.detail?.field);
    if (control) {
      control.complain(error.message);
      control.input.focus();
    } else {
      setText(problem, error.message);
      problem.hidden = false;
    }
  }

  /* The server names a field as its body has it: `config.cap_records` is about `cap_records`. */
  function controlOf(path) {
    if (!path) return undefined;
    return named.get(path) ?? named.get(String(path).split(/[.[]/).find((part) => named.has(part)));
  }

  async function sent(event) {
    event.preventDefault();
    if (send.disabled) return;
    problem.hidden = true;
    let read;
    try {
      read = values();
    } catch (error) {
      if (error instanceof FieldError) return;
      throw error;
    }
    send.disabled = true;
    element.setAttribute("aria-busy", "true");
    try {
      await onSubmit(read);
    } catch (error) {
      if (error.name !== "AbortError") fail(error);
    } finally {
      send.disabled = false;
      element.removeAttribute("aria-busy");
    }
  }

  const set = (given) => {
    for (const [name, value] of Object.entries(given)) named.get(name)?.write(value);
  };
  return Object.assign(element, { values, set, fail, field: (name) => named.get(name)?.input });
}

/* A field with its label, hint and place for what is wrong with it. */
function fieldLine(field) {
  const control = KINDS[field.kind ?? "text"](field);
  if (field.value !== undefined) control.write(field.value);
  const { input } = control;
  input.id = uniqueId("field");
  const hint = field.hint && h("span", { class: "hint", id: uniqueId("hint") }, field.hint);
  const wrong = h("span", { class: "wrong", id: uniqueId("wrong"), role: "alert" });
  const describe = () => {
    const ids = [hint && hint.id, wrong.textContent && wrong.id].filter(Boolean).join(" ");
    if (ids) input.setAttribute("aria-describedby", ids);
    else input.removeAttribute("aria-describedby");
  };
  const complain = (text) => {
    setText(wrong, text);
    if (text) input.setAttribute("aria-invalid", "true");
    else input.removeAttribute("aria-invalid");
    describe();
  };
  input.addEventListener("input", () => wrong.textContent && complain(""));
  describe();
  const star = field.required && h("span", { class: "needed", "aria-hidden": "true" }, "*");
  const label = h("label", { for: input.id }, field.label, star);
  const isFlag = field.kind === "flag";
  const pair = isFlag ? [control.element, label] : [label, control.element];
  const element = h("div", { class: ["field", isFlag && "field-flag"] }, pair, hint, wrong);
  return { element, control: { ...control, name: field.name, complain } };
}
