// Light and dark: the system's, unless the reader chose; what canvases need of it as numbers.

export type Theme = "light" | "dark";

const KEY = "throng-theme";

/** The one that holds now. */
export function theme(): Theme {
  const chosen = document.documentElement.dataset["theme"];
  if (chosen === "light" || chosen === "dark") return chosen;
  return window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** Takes up what was chosen before, and calls `changed` whenever it changes. */
export function watchTheme(changed: () => void): void {
  try {
    const chosen = localStorage.getItem(KEY);
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset["theme"] = chosen;
  } catch {
    // A page that may keep nothing follows the system.
  }
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
}

export function toggleTheme(): void {
  const next = theme() === "dark" ? "light" : "dark";
  document.documentElement.dataset["theme"] = next;
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // It holds for this visit.
  }
}

/** A colour of the theme's, `--name`, as `#rrggbb`. */
export function color(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
