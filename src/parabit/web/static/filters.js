// The controls below the search box: how many hits, how far, ranked by what.

import { $, counted, debounced, el, put } from "./dom.js";
import { change, current } from "./state.js";

const RANKS = {
  hamming: "distance of codes",
  asymmetric: "code and activations",
  cosine: "real vectors",
  words: "words in common",
  hybrid: "words and code",
};
const COUNTS = [5, 10, 20, 50, 100];

let furthest = 64; // bits at the slider's last step but one; the last means any distance

/** "any distance", "the same code", "24 bits". */
export const radiusTold = (radius) =>
  radius === null ? "any distance" : radius === 0 ? "the same code" : counted(radius, "bit");

export function setUpFilters() {
  // While the slider moves the words follow at once, and the search a little later.
  const search = debounced(() => change({ radius: chosenRadius() }, "replace"), 60);
  $("radius").addEventListener("input", () => { tellRadius(chosenRadius()); search(); });
  $("radius").addEventListener("change", () => search.now());
  $("rank").addEventListener("change", () => change({ rank: $("rank").value || null }));
  $("k").addEventListener("change", () => change({ k: Number($("k").value) }));
}

function chosenRadius() {
  const step = Number($("radius").value);
  return step > furthest ? null : step;
}

function tellRadius(radius) {
  put($("radius-told"), radiusTold(radius));
  $("radius").setAttribute("aria-valuetext", radiusTold(radius));
  const slider = $("radius");
  slider.style.setProperty("--filled", `${(100 * Number(slider.value)) / Number(slider.max)}%`);
}

/** What this index offers. */
export function offer(about) {
  // Codes of unrelated documents differ in half of the bits: beyond that a radius means nothing.
  furthest = Math.max(1, Math.min(about.limits.radius, Math.floor(about.bits / 2)));
  $("radius").max = furthest + 1;
  const best = about.best_rank;
  put($("rank"), el("option", { value: "" }, `best (${RANKS[best] ?? best})`),
    about.ranks.map((rank) => el("option", { value: rank }, RANKS[rank] ? `${rank}: ${RANKS[rank]}` : rank)));
  show(current(), about);
}

/** Show what is set. */
export function show({ k, radius, rank }, about) {
  $("radius").value = radius === null ? furthest + 1 : Math.min(radius, furthest);
  tellRadius(radius);
  $("rank").value = rank ?? "";
  if ($("rank").value !== (rank ?? "")) $("rank").append(el("option", { value: rank, selected: true }, rank));
  const most = about?.limits.k ?? 100;
  const counts = [...new Set([...COUNTS.filter((count) => count <= most), k])].sort((one, other) => one - other);
  put($("k"), counts.map((count) => el("option", { value: count }, count)));
  $("k").value = k;
}
