/* The fields of forms, one maker a kind. Each gives `{ element, input, read(), write(value) }`: `read` gives the value, or
 * throws a `FieldError` that says what would be right. */

import { h } from "./dom.js";
import { parseJson } from "./exact.js";
import { iconButton } from "./state.js";
import { parseBytes, parseDuration, showBytes, showDuration } from "./units.js";

export class FieldError extends Error {}

export const KINDS = {
  text: (field) => textField(field, "text"),
  email: (field) => textField(field, "email"),
  password: (field) => textField(field, "password"),
  number: numberField,
  duration: (field) => measured(field, parseDuration, showDuration, "a duration like 30s, 15m or 7d"),
  bytes: (field) => measured(field, parseBytes, showBytes, "a size like 512 KiB or 2 GiB"),
  select: selectField,
  flag: flagField,
  area: areaField,
  json: jsonField,
  tags: tagsField,
};

function textField(field, type) {
  const input = h("input", { ...common(field), type, maxlength: field.max, spellcheck: "false" });
  const write = (value) => {
    input.value = value ?? "";
  };
  const read = () => demand(field, type === "password" ? input.value : input.value.trim());
  return { element: input, input, read, write };
}

function areaField(field) {
  const input = h("textarea", { ...common(field), rows: field.rows ?? 4, spellcheck: "false" });
  const write = (value) => {
    input.value = value ?? "";
  };
  return { element: input, input, read: () => demand(field, input.value), write };
}

function jsonField(field) {
  const area = areaField(field);
  area.input.classList.add("code");
  const read = () => {
    const text = area.read();
    if (text.trim() === "") return null;
    try {
      return parseJson(text);
    } catch (error) {
      throw new FieldError(`This is not JSON: ${error.message}`);
    }
  };
  const write = (value) => area.write(value === undefined || value === null ? "" : JSON.stringify(value, null, 2));
  return { ...area, read, write };
}

function numberField(field) {
  const { min, max, step = "any" } = field;
  const input = h("input", { ...common(field), type: "number", min, max, step });
  const read = () => {
    if (input.validity.badInput) throw new FieldError("Expected a number.");
    const text = demand(field, input.value);
    return text === "" ? null : within(field, Number(text), String);
  };
  const write = (value) => {
    input.value = value ?? "";
  };
  return { element: input, input, read, write };
}

function measured(field, parse, show, expected) {
  const input = h("input", { ...common(field), type: "text", spellcheck: "false" });
  const read = () => {
    const text = demand(field, input.value.trim());
    if (text === "") return null;
    const value = parse(text);
    if (Number.isNaN(value)) throw new FieldError(`Expected ${expected}.`);
    return within(field, value, show);
  };
  const write = (value) => {
    input.value = value === null || value === undefined ? "" : show(value);
  };
  return { element: input, input, read, write };
}

/* `options` are texts, or `{ value, label }`. */
function selectField(field) {
  const options = (field.options ?? []).map((each) => (typeof each === "object" ? each : { value: each, label: each }));
  const input = h("select", common(field), options.map(({ value, label }) => h("option", { value }, label)));
  const read = () => options[input.selectedIndex]?.value ?? null;
  const write = (value) => {
    const at = options.findIndex((each) => each.value === value);
    if (at >= 0) input.selectedIndex = at;
  };
  return { element: input, input, read, write };
}

function flagField(field) {
  const input = h("input", { ...common(field), type: "checkbox", required: false });
  const write = (value) => {
    input.checked = Boolean(value);
  };
  return { element: input, input, read: () => input.checked, write };
}

/* Several words: Enter or a comma ends one, Backspace in the empty field takes the last one back. */
function tagsField(field) {
  const words = [];
  const list = h("span", { class: "tags-words" });
  const input = h("input", { ...common(field), type: "text", required: false, spellcheck: "false" });
  const element = h("div", { class: "tags" }, list, input);

  function draw() {
    list.replaceChildren(
      ...words.map((word, at) => {
        const remove = () => {
          words.splice(at, 1);
          draw();
          input.focus();
        };
        return h("span", { class: "tag" }, word, iconButton("close", `Remove ${word}`, remove));
      }),
    );
  }

  function take() {
    // A click on a word's button takes the focus away: the button has to be there still.
    if (input.value === "") return;
    for (const word of input.value.split(",").map((each) => each.trim())) {
      if (word && !words.includes(word)) words.push(word);
    }
    input.value = "";
    draw();
  }

  input.addEventListener("keydown", (event) => {
    if ((event.key === "Enter" && input.value.trim() !== "") || event.key === ",") {
      event.preventDefault();
      take();
    } else if (event.key === "Backspace" && input.value === "" && words.length > 0) {
      words.pop();
      draw();
    }
  });
  input.addEventListener("blur", take);
  const read = () => {
    take();
    if (field.required && words.length === 0) throw new FieldError("Expected at least one.");
    return [...words];
  };
  const write = (value) => {
    words.splice(0, words.length, ...(value ?? []));
    draw();
  };
  return { element, input, read, write };
}

function common(field) {
  return {
    name: field.name,
    required: Boolean(field.required),
    disabled: Boolean(field.disabled),
    placeholder: field.placeholder,
    autocomplete: field.autocomplete ?? "off",
    autofocus: Boolean(field.autofocus),
  };
}

function demand(field, text) {
  if (field.required && text === "") throw new FieldError("This is needed.");
  return text;
}

function within({ min, max }, value, show) {
  if (min !== undefined && value < min) throw new FieldError(`Expected at least ${show(min)}.`);
  if (max !== undefined && value > max) throw new FieldError(`Expected at most ${show(max)}.`);
  return value;
}
