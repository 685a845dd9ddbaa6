// On narrow screens the documents and the map share one place, and the filters open and close. On wide ones the map can
// be hidden, which the browser remembers.

import { $, put } from "./dom.js";

const TABS = { hits: ["tab-hits", "results"], map: ["tab-map", "map-section"] };
const NARROW = matchMedia("(max-width: 899px)");
const HIDDEN = "parabit-map-hidden";

export function showTab(name) {
  document.body.dataset.tab = name;
  for (const [other, [id]] of Object.entries(TABS)) {
    $(id).setAttribute("aria-selected", String(other === name));
    $(id).tabIndex = other === name ? 0 : -1;
  }
  showFilters(false);
}

function showFilters(open) {
  $("ask").classList.toggle("with-filters", open);
  $("filters-button").setAttribute("aria-expanded", String(open));
}

/** Sections are panels of tabs only if there are tabs. */
function roles() {
  for (const [tab, section] of Object.values(TABS)) {
    if (NARROW.matches) {
      $(section).setAttribute("role", "tabpanel");
      $(section).setAttribute("aria-labelledby", tab);
    } else {
      $(section).removeAttribute("role");
      $(section).removeAttribute("aria-labelledby");
    }
  }
}

function kept() {
  try { return localStorage.getItem(HIDDEN) === "1"; } catch { return false; }
}

function hideMap(hidden) {
  document.body.classList.toggle("map-hidden", hidden);
  $("map-button").setAttribute("aria-pressed", String(!hidden));
  put($("map-button-text"), hidden ? "Show map" : "Hide map");
}

export function setUpTabs() {
  for (const [name, [id]] of Object.entries(TABS)) $(id).addEventListener("click", () => showTab(name));
  $("tabs").addEventListener("keydown", (event) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    event.preventDefault();
    const name = document.body.dataset.tab === "map" ? "hits" : "map";
    showTab(name);
    $(TABS[name][0]).focus();
  });
  $("filters-button").addEventListener("click", () => showFilters(!$("ask").classList.contains("with-filters")));
  $("filters-done").addEventListener("click", () => { showFilters(false); $("filters-button").focus(); });
  document.addEventListener("click", (event) => {
    if (NARROW.matches && event.target.isConnected && !$("ask").contains(event.target)) showFilters(false);
  });
  $("map-button").addEventListener("click", () => {
    const hidden = !document.body.classList.contains("map-hidden");
    hideMap(hidden);
    try { localStorage.setItem(HIDDEN, hidden ? "1" : "0"); } catch { /* for this page alone */ }
  });
  hideMap(kept());
  NARROW.addEventListener("change", roles);
  roles();
  showTab("hits");
}
