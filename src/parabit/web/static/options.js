// Options of a search: ranked by what, how many hits, how near by code. And panels that open below a button.

import { $, counted, debounced, el, put } from "./dom.js";
import { change, current } from "./state.js";

const RANKS = {
  hybrid: "Words and meaning",
  words: "Words alone",
  hamming: "Meaning: distance of codes",
  asymmetric: "Meaning: code and how sure it is",
  cosine: "Meaning: real vectors",
};
const COUNTS = [5, 10, 20, 50, 100];

let furthest = 64; // bits at the slider's last step but one; the last means any distance

export const rankText = (rank) => (RANKS[rank] ?? rank).toLowerCase();

/** "any distance", "0 bits (the same code)", "24 bits". */
export const radiusText = (radius) =>
  radius === null ? "any distance" : radius === 0 ? "0 bits (the same code)" : counted(radius, "bit");

/** A panel that a button opens and closes; so do Escape and a click elsewhere. `opened` fills it. */
export function popover(home, button, panel, opened = () => {}) {
  const isOpen = () => !panel.hidden;
  const set = (open) => {
    panel.hidden = !open;
    button.setAttribute("aria-expanded", String(open));
    if (!open) return;
    opened();
    panel.classList.remove("to-left");
    panel.classList.toggle("to-left", panel.getBoundingClientRect().right > document.documentElement.clientWidth - 8);
    [...panel.querySelectorAll("input, select, button")].find((stop) => stop.checkVisibility())?.focus({ preventScroll: true });
  };
  button.addEventListener("click", () => set(!isOpen()));
  home.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !isOpen()) return;
    event.stopPropagation();
    event.preventDefault();
    set(false);
    button.focus();
  });
  // Where panels push others down, closing one while a button is pressed would move that button away.
  const elsewhere = (target) => isOpen() && getComputedStyle(panel).position === "absolute" && target && !home.contains(target);
  document.addEventListener("pointerdown", (event) => { if (elsewhere(event.target)) set(false); });
  home.addEventListener("focusout", (event) => { if (elsewhere(event.relatedTarget)) set(false); });
  return { isOpen, close: () => set(false) };
}

export function setUpOptions() {
  // While the slider moves the words follow at once, and the search a little later.
  const search = debounced(() => change({ radius: chosenRadius() }, "replace"), 60);
  $("radius").addEventListener("input", () => { showRadius(chosenRadius()); search(); });
  $("radius").addEventListener("change", () => search.now());
  $("rank").addEventListener("change", () => change({ rank: $("rank").value || null }));
  $("k").addEventListener("change", () => change({ k: Number($("k").value) }));
  $("copies").addEventListener("change", () => change({ copies: $("copies").checked }));
  popover($("options-home"), $("options-button"), $("options-panel"));
}

function chosenRadius() {
  const step = Number($("radius").value);
  return step > furthest ? null : step;
}

function showRadius(radius) {
  const slider = $("radius");
  put($("radius-text"), radiusText(radius));
  slider.setAttribute("aria-valuetext", radiusText(radius));
  slider.style.setProperty("--filled", `${(100 * Number(slider.value)) / Number(slider.max)}%`);
}

/** What this index offers. */
export function offer(about) {
  // Codes of unrelated documents differ in half of the bits: beyond that a radius means nothing.
  furthest = Math.max(1, Math.min(about.limits.radius, Math.floor(about.bits / 2)));
  $("radius").max = furthest + 1;
  const best = about.best_rank;
  put($("rank"), el("option", { value: "" }, `Best (${rankText(best)})`),
    about.ranks.map((rank) => el("option", { value: rank }, RANKS[rank] ?? rank)));
  $("copies").closest("label").hidden = !about.text_kept;
  show(current(), about);
}

/** Show what is set. */
export function show({ k, radius, rank, copies }, about) {
  $("radius").value = radius === null ? furthest + 1 : Math.min(radius, furthest);
  showRadius(radius);
  $("rank").value = rank ?? "";
  if ($("rank").value !== (rank ?? "")) $("rank").append(el("option", { value: rank, selected: true }, rank));
  const most = about?.limits.k ?? 100;
  const counts = [...new Set([...COUNTS.filter((count) => count <= most), k])].sort((one, other) => one - other);
  put($("k"), counts.map((count) => el("option", { value: count }, count)));
  $("k").value = k;
  $("copies").checked = copies;
  $("options-button").classList.toggle("set", radius !== null || rank !== null || k !== 10 || !copies);
}
