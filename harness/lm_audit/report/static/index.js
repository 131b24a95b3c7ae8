"use strict";
(() => {
  const search = document.getElementById("filter");
  const chips = [...document.querySelectorAll("#chips button")];
  const rows = [...document.querySelectorAll("tr[data-text]")];
  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = chips.filter((chip) => chip.getAttribute("aria-pressed") === "true").map((chip) => chip.dataset.tag);
    for (const row of rows) {
      const tags = row.dataset.tags.split("\n");
      row.hidden = !(words.every((word) => row.dataset.text.includes(word)) && wanted.every((tag) => tags.includes(tag)));
    }
  }
  search.addEventListener("input", filter);
  for (const chip of chips) {
    chip.addEventListener("click", () => {
      chip.setAttribute("aria-pressed", String(chip.getAttribute("aria-pressed") !== "true"));
      filter();
    });
  }
})();
