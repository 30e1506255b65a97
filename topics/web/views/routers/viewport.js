/* A drawing that can be moved and made larger: by dragging and the wheel, by buttons, and by the keys + - 0 and the arrows. */

import { h } from "../../kit/dom.js";
import { button } from "../../kit/state.js";

const STEP = 1.25;
const PAN_SHARE = 0.1;
const ZOOM_MAX = 3;
/* Below this nobody can read it. */
const SCALE_MIN = 0.6;
const EDGE = 40;
const HEIGHT_PX_MIN = 180;
const HEIGHT_PX_MAX = 520;

/* `drawing` is an SVG element. Gives an element with `fit(width, height)`, which shows a drawing of that size. */
export function viewport(drawing, label) {
  const field = h("div", { class: "viewport-field", tabindex: "0", role: "group", "aria-label": `${label}. Arrow keys move it, plus and minus change its size, 0 shows all.` }, drawing);
  const element = h(
    "div",
    { class: "viewport" },
    field,
    h(
      "div",
      { class: "viewport-tools" },
      button("+", () => zoom(STEP), { "aria-label": "Larger" }),
      button("−", () => zoom(1 / STEP), { "aria-label": "Smaller" }),
      button("Fit", () => whole(), { "aria-label": "Show all" }),
    ),
  );
  let size = { width: 1, height: 1 };
  let box = { x: 0, y: 0, width: 1, height: 1 };
  let dragged = null;

  function draw() {
    drawing.setAttribute("viewBox", `${box.x} ${box.y} ${box.width} ${box.height}`);
  }

  function whole() {
    // Small drawings are not blown up.
    const { clientWidth: wide = 1, clientHeight: high = 1 } = field;
    const width = Math.max(size.width + 2 * EDGE, wide);
    const height = Math.max(size.height + 2 * EDGE, high);
    box = { x: (size.width - width) / 2, y: (size.height - height) / 2, width, height };
    draw();
  }

  /* As much of it as can be read, from its left side on. */
  function readable() {
    whole();
    const width = Math.min(box.width, field.clientWidth / SCALE_MIN);
    if (width === box.width) return;
    const height = (box.height * width) / box.width;
    box = { x: -EDGE, y: (size.height - height) / 2, width, height };
    draw();
  }

  /* Keeps the point at these shares of the field where it is. */
  function zoom(factor, shareX = 0.5, shareY = 0.5) {
    const most = Math.max(size.width, size.height, field.clientWidth) * ZOOM_MAX;
    const width = Math.min(most, Math.max(field.clientWidth / ZOOM_MAX, box.width / factor));
    const scale = width / box.width;
    box = {
      x: box.x + box.width * shareX * (1 - scale),
      y: box.y + box.height * shareY * (1 - scale),
      width,
      height: box.height * scale,
    };
    draw();
  }

  function pan(dx, dy) {
    box = { ...box, x: box.x + dx, y: box.y + dy };
    draw();
  }

  field.addEventListener(
    "wheel",
    (event) => {
      // Without a key, the wheel is the page's.
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const { left, top, width, height } = field.getBoundingClientRect();
      zoom(event.deltaY < 0 ? STEP : 1 / STEP, (event.clientX - left) / width, (event.clientY - top) / height);
    },
    { passive: false },
  );
  field.addEventListener("pointerdown", (event) => {
    if (event.button === 0) dragged = { x: event.clientX, y: event.clientY, id: event.pointerId };
  });
  field.addEventListener("pointermove", (event) => {
    if (dragged === null || event.buttons === 0) return;
    const perPx = box.width / Math.max(1, field.clientWidth);
    pan((dragged.x - event.clientX) * perPx, (dragged.y - event.clientY) * perPx);
    dragged = { ...dragged, x: event.clientX, y: event.clientY };
  });
  for (const kind of ["pointerup", "pointercancel", "pointerleave"]) field.addEventListener(kind, () => (dragged = null));
  field.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const [dx, dy] = [box.width * PAN_SHARE, box.height * PAN_SHARE];
    const keys = {
      ArrowLeft: () => pan(-dx, 0),
      ArrowRight: () => pan(dx, 0),
      ArrowUp: () => pan(0, -dy),
      ArrowDown: () => pan(0, dy),
      "+": () => zoom(STEP),
      "=": () => zoom(STEP),
      "-": () => zoom(1 / STEP),
      0: () => whole(),
    };
    if (!(event.key in keys)) return;
    event.preventDefault();
    keys[event.key]();
  });

  return Object.assign(element, {
    fit(width, height) {
      size = { width, height };
      field.style.setProperty("height", `${Math.max(HEIGHT_PX_MIN, Math.min(HEIGHT_PX_MAX, height + 2 * EDGE))}px`);
      readable();
    },
  });
}
