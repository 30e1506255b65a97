/* Elements out of names, attributes and text. A string is always text: there is no way to put HTML in, and an address
 * that would run a script is refused. */

const SVG_SPACE = "http://www.w3.org/2000/svg";
const FORBIDDEN_TAGS = new Set(["script", "style", "iframe", "object", "embed", "base", "foreignObject"]);
const SAFE_ADDRESS = /^(?:https?:|mailto:|data:image\/|blob:|\/(?!\/)|#|\?|$)/i;
const ADDRESSES = new Set(["href", "src", "action", "formaction", "xlink:href"]);
/* What is set on the element itself, because the attribute says only where it begins. */
const PROPERTIES = new Set(["value", "checked", "selected", "indeterminate", "disabled", "open", "hidden"]);

/* An element: `h("a", { href: "/topics", class: "quiet", on: { click } }, "Topics")`. Props may be left out.
 *   class   a string, or an array of which what is falsy is left out
 *   data    an object, for `data-…`
 *   on      an object of listeners; `signal` beside it ends them
 *   all else is an attribute: true is there, false, null and undefined are not; of `aria-…` both are written out. */
export function h(tag, props, ...children) {
  if (FORBIDDEN_TAGS.has(tag)) throw new Error(`<${tag}> is not made here`);
  return fill(document.createElement(tag), props, children);
}

/* The same for a part of a drawing. */
export function svg(tag, props, ...children) {
  if (FORBIDDEN_TAGS.has(tag)) throw new Error(`<${tag}> is not made here`);
  return fill(document.createElementNS(SVG_SPACE, tag), props, children);
}

/* Put children in place of those there are; gives the element. */
export function replace(element, ...children) {
  element.replaceChildren(...nodes(children));
  return element;
}

/* Change the text of an element if it is another one: what is the same is not touched, so that nothing flickers. */
export function setText(element, text) {
  const wanted = String(text);
  if (element.textContent !== wanted) element.textContent = wanted;
  return element;
}

let lastId = 0;
/* An id that no other element has, for labels and the like. */
export function uniqueId(start = "id") {
  lastId += 1;
  return `${start}-${lastId}`;
}

function fill(element, props, children) {
  if (props !== null && props !== undefined) {
    if (typeof props !== "object" || props instanceof Node || Array.isArray(props)) children = [props, ...children];
    else setAll(element, props);
  }
  element.append(...nodes(children));
  // A select has its value once its options are there.
  if (props?.value !== undefined && element instanceof HTMLSelectElement) element.value = props.value;
  return element;
}

function setAll(element, props) {
  const { class: names, data, on, signal, ...attributes } = props;
  if (names) element.setAttribute("class", Array.isArray(names) ? names.filter(Boolean).join(" ") : names);
  for (const [name, value] of Object.entries(data ?? {})) {
    if (value !== null && value !== undefined) element.dataset[name] = value;
  }
  for (const [event, listener] of Object.entries(on ?? {})) element.addEventListener(event, listener, { signal });
  for (const [name, value] of Object.entries(attributes)) setOne(element, name, value);
}

function setOne(element, name, value) {
  if (name === "style" || name === "srcdoc" || /^on/i.test(name)) throw new Error(`${name} is not set here`);
  if (value === null || value === undefined) return;
  if (ADDRESSES.has(name) && !SAFE_ADDRESS.test(String(value).trim())) throw new Error(`${name} leads out of the page`);
  if (PROPERTIES.has(name) && name in element) element[name] = value;
  else if (name.startsWith("aria-")) element.setAttribute(name, String(value));
  else if (value !== false) element.setAttribute(name, value === true ? "" : String(value));
}

function nodes(children) {
  return children.flat(Infinity).flatMap((child) => {
    if (child === null || child === undefined || child === false || child === true) return [];
    return [child instanceof Node ? child : document.createTextNode(String(child))];
  });
}
