// Dark or light: as the system is set, until the switch is used.

import type { Theme } from "./colours";

const query = () => matchMedia("(prefers-color-scheme: light)");

export function initialTheme(): Theme {
  const theme: Theme = query().matches ? "day" : "dark";
  apply(theme);
  return theme;
}

export function apply(theme: Theme): void {
  document.documentElement.dataset["theme"] = theme;
}

/** Calls back when the system changes its mind. */
export function onSystemTheme(hear: (theme: Theme) => void): void {
  query().addEventListener("change", (event) => hear(event.matches ? "day" : "dark"));
}

/** Names the button that switches after what it does. */
export function nameSwitch(button: HTMLElement, theme: Theme): void {
  button.title = `Switch to ${theme === "dark" ? "light" : "dark"} colors`;
  button.setAttribute("aria-label", button.title);
}
