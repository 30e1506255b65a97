/* Light, dark, or as the system has it. */

const STORED = "topics-theme";

export const THEMES = [
  { name: "system", label: "As the system", icon: "screen" },
  { name: "light", label: "Light", icon: "sun" },
  { name: "dark", label: "Dark", icon: "moon" },
];

export function theme() {
  return document.documentElement.dataset.theme ?? "system";
}

export function setTheme(name) {
  if (name === "system") {
    delete document.documentElement.dataset.theme;
    localStorage.removeItem(STORED);
  } else {
    document.documentElement.dataset.theme = name;
    localStorage.setItem(STORED, name);
  }
}

/* The one after this one. */
export function nextTheme() {
  const at = THEMES.findIndex(({ name }) => name === theme());
  const next = THEMES[(at + 1) % THEMES.length];
  setTheme(next.name);
  return next;
}
