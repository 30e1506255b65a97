/* Starts the page: who asks, the frame around the views, and the view that the address names. */

import { AwayLine } from "./frame/away.js";
import { bindKeys } from "./frame/keys.js";
import { Frame } from "./frame/frame.js";
import { Palette } from "./frame/palette.js";
import { Person } from "./frame/person.js";
import { Router } from "./frame/router.js";
import { replace } from "./kit/dom.js";

const frame = new Frame();
const person = new Person();
const router = new Router(frame, person);
const palette = new Palette(router, person);

frame.begin(router, person, palette);
new AwayLine(frame.notices);
bindKeys({ go: (path) => router.go(path), palette });
replace(document.body, frame.element);
router.begin();
