"use strict";
// Of every page: that scripts run, and the theme, which is the system's unless chosen.
(() => {
  const root = document.documentElement;
  root.classList.add("scripted");
  document.getElementById("theme")?.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
})();
