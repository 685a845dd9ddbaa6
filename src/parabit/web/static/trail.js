// What is searched, where that is not just the text in the box: the way from a query over documents that others are like.

import { $, el, put } from "./dom.js";
import { icon } from "./icons.js";
import { change } from "./state.js";

const short = (text) => (text.length > 60 ? `${text.slice(0, 59)}…` : text);

export function showTrail({ q, like }) {
  const trail = $("trail");
  trail.hidden = !like.length;
  if (!like.length) return;
  const steps = [];
  const before = like.slice(0, -1);
  const query = q.trim();
  steps.push(el("button", {
    class: "button back", type: "button", id: "trail-back",
    onclick: () => change({ like: before }),
  }, icon("back"), before.length ? "Back" : query ? "Back to the search" : "Back"));
  if (query) steps.push(el("button", { class: "crumb", type: "button", onclick: () => change({ like: [] }) }, short(query)));
  before.forEach((id, place) => steps.push(
    el("button", { class: "crumb", type: "button", onclick: () => change({ like: like.slice(0, place + 1) }) }, `like ${short(String(id))}`)));
  steps.push(el("span", { class: "crumb here", "aria-current": "true" }, "More like ",
    el("button", { class: "plain", type: "button", onclick: () => change({ doc: like.at(-1) }) }, short(String(like.at(-1))))));
  put(trail, steps);
}
