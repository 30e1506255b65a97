/* The button that pauses what works, and lets go on what rests. */

import { replace } from "./dom.js";
import { icon } from "./icons.js";

export function showPause(button, isPaused) {
  const label = isPaused ? "Resume" : "Pause";
  if (button.textContent !== label) replace(button, icon(isPaused ? "play" : "pause"), label);
}
