// The legend of the map, which filters too.

import { colourOf, COLOURS, placeOf } from "./colours.js";
import { el, number, put } from "./dom.js";

const shown = (label) => placeOf(label) >= 0;

/** Fill the legend: the labels that have a colour, and how many have none. */
export function legend(element, { field, labels, label }, chosen, filter) {
  const counts = new Uint32Array(labels.length);
  let without = 0;
  for (const which of label) {
    if (which < 0) without += 1;
    else counts[which] += 1;
  }
  const entries = labels.map((name, which) => ({ name, count: counts[which] })).filter(({ count }) => count);
  const coloured = entries.filter(({ name }) => shown(name)).slice(0, COLOURS);
  const others = entries.filter(({ name }) => !shown(name));
  const picked = others.filter(({ name }) => chosen.includes(name));
  const rest = others.length - picked.length;
  put(element,
    [...coloured, ...picked].map(({ name, count }) => button(name, count, chosen.includes(name), chosen.length > 0, () => filter(field, name))),
    rest || (without && entries.length) ? el("span", { class: "legend-rest" }, dot("var(--label-other)"), restText(rest, without)) : null);
}

function restText(rest, without) {
  const others = rest === 1 ? "1 other" : `${number(rest)} others`;
  if (!without) return others;
  return rest ? `${others}, ${number(without)} without` : `${number(without)} without`;
}

function dot(colour) {
  const spot = el("span", { class: "dot", "aria-hidden": "true" });
  spot.style.setProperty("--dot", colour);
  return spot;
}

function button(name, count, chosen, some, onclick) {
  return el("button", {
    class: `legend-entry${some && !chosen ? " off" : ""}`, type: "button", "aria-pressed": String(chosen), title: `${name}: ${number(count)} on the map`, onclick,
  }, dot(chosen && placeOf(name) < 0 ? "var(--accent)" : colourOf(name)), name);
}
