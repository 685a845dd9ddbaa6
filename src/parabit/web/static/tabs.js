// On narrow screens the documents and the map share one place; tabs choose between them. So does the button for options.

import { $ } from "./dom.js";

const TABS = { hits: "tab-hits", map: "tab-map" };

export function showTab(name) {
  document.body.dataset.tab = name;
  for (const [other, id] of Object.entries(TABS)) {
    $(id).setAttribute("aria-selected", String(other === name));
    $(id).tabIndex = other === name ? 0 : -1;
  }
}

export function setUpTabs() {
  for (const [name, id] of Object.entries(TABS)) $(id).addEventListener("click", () => showTab(name));
  $("tabs").addEventListener("keydown", (event) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    event.preventDefault();
    const name = document.body.dataset.tab === "map" ? "hits" : "map";
    showTab(name);
    $(TABS[name]).focus();
  });
  $("options-button").addEventListener("click", () => {
    const open = $("ask").classList.toggle("with-options");
    $("options-button").setAttribute("aria-expanded", String(open));
  });
  showTab("hits");
}
