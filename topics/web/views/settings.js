/* The configuration in effect: each setting with its value and where that came from. Of secrets only whether they are set. */

import { api } from "../kit/api.js";
import { h, setText, uniqueId } from "../kit/dom.js";
import { counted } from "../kit/format.js";
import { badge, heading, loading, toolbar } from "../kit/state.js";
import { table } from "../kit/table.js";

const ORIGIN_KINDS = { default: "quiet" };
const UNITS = { ms: "time", bytes: "size", count: "number", flag: "true or false", path: "path", text: "text", secret: "secret" };

export default {
  title: () => "Settings",
  style: "accounts",

  async mount(root, { signal }) {
    const place = h("div", null, loading("Settings"));
    root.append(
      heading("Settings", {
        about: "What this server was started with. To change one, set its variable, flag or line in the file, and restart.",
      }),
      place,
    );
    const { settings } = await api.get("/v0/settings", { signal });
    place.replaceChildren(view(settings));
  },
};

function view(settings) {
  const search = h("input", { id: uniqueId("find"), type: "search", placeholder: "wal, bytes, cors…", autocomplete: "off" });
  const changed = h("input", { id: uniqueId("changed"), type: "checkbox" });
  const found = h("span", { class: "said", role: "status" });
  const list = table({
    label: "Settings",
    key: (row) => row.setting,
    empty: h("p", { class: "none" }, "No setting fits."),
    columns: [
      { name: "setting", label: "Setting", value: (row) => row.setting, cell: nameCell },
      { name: "value", label: "Value", class: "wrap", value: (row) => row.value, cell: (row) => h("code", null, shown(row)) },
      { name: "unit", class: "short", label: "Kind", value: (row) => UNITS[row.unit] ?? row.unit },
      { name: "origin", label: "From", value: (row) => row.origin, cell: (row) => badge(row.origin, ORIGIN_KINDS[row.origin] ?? "info") },
      { name: "default", label: "Default", class: "wrap", value: (row) => row.default, cell: (row) => h("code", null, row.default) },
    ],
  });
  const show = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const offered = settings.filter((row) => !changed.checked || row.origin !== "default");
    const fits = offered.filter((row) => words.every((word) => textOf(row).includes(word)));
    list.update(fits);
    setText(found, `${counted(fits.length, "setting")} of ${settings.length}`);
  };
  for (const input of [search, changed]) input.addEventListener("input", show);
  show();
  return h(
    "div",
    { class: "settings" },
    toolbar(
      h("div", { class: "field" }, h("label", { for: search.id }, "Search"), search),
      h("div", { class: "field field-flag" }, changed, h("label", { for: changed.id }, "Only what is not the default")),
      found,
    ),
    list,
  );
}

function nameCell(row) {
  const about = h("span", { class: "below about" }, row.about);
  return h("div", null, h("strong", null, row.setting), h("code", { class: "below" }, row.variable), about);
}

/* The text that a variable could have. Whatever a secret is, it is not here: the server does not send it. */
function shown(row) {
  if (row.unit !== "secret") return row.text;
  return row.value === null ? "not set" : "set";
}

function textOf(row) {
  return [row.setting, row.variable, row.text, row.origin, row.about].join(" ").toLowerCase();
}
