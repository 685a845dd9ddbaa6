// Why a document was found: the share of each word and of the code in its score, and how near the codes are.

import { grid } from "./bits.js";
import { counted, el, put } from "./dom.js";

const NEAR = [[0, "the same code"], [0.1, "almost the same"], [0.22, "very near"], [0.32, "near"], [0.4, "related"], [1, "not near"]];

/** How near two codes are, in words; those of unrelated texts differ in about half of their bits. */
export const nearness = (distance, bits) => NEAR.find(([share]) => distance / bits <= share)[1];

const percent = (share) => `${Math.round(100 * share)} %`;

function bar(name, share, most, kind) {
  const fill = el("i", { class: kind });
  fill.style.width = `${Math.max(1.5, (100 * share) / most)}%`;
  return el("div", { class: "share" }, el("span", { class: "share-name" }, name), el("span", { class: "share-bar" }, fill), el("span", { class: "share-value" }, percent(share)));
}

/** Fill the panel of a hit; what a score is made of is asked for when somebody wants to know. */
export async function whyPanel(panel, hit, answer, about, acts) {
  const bits = counted(about.bits, "bit");
  const near = hit.distance === null ? null : el("div", { class: "near" },
    grid(hit.code, about.bits, { other: answer.code, cell: about.bits <= 160 ? 9 : 6, label: `${hit.distance} of ${bits} differ` }),
    el("p", {}, "The codes are ", el("b", {}, nearness(hit.distance, about.bits)), `: ${hit.distance} of ${bits} differ `,
      el("span", { class: "swatch" }, el("i", { class: "one differs", "aria-hidden": "true" }), "."), el("br"),
      el("span", { class: "quiet" }, "Unrelated texts differ in about half.")));
  const shares = el("div", { class: "shares" }, el("p", { class: "quiet" }, "Looking …"));
  put(panel, shares, near);
  const why = await acts.why(hit);
  if (why === null) put(shares, el("p", { class: "quiet" }, "The server does not say."));
  else put(shares, sharesOf(why, hit, answer));
}

function sharesOf({ words, code }, hit, answer) {
  const listed = Object.entries(words).filter(([, share]) => share > 0);
  const total = listed.reduce((sum, [, share]) => sum + share, Math.max(code, 0));
  const score = el("p", { class: "quiet" }, `Score ${hit.score.toFixed(3)}, ranked by ${answer.rank}.`);
  if (!total && hit.distance === null) return [el("p", {}, "The query only restricts: documents are in the order in which they were added.")];
  if (!total) return [el("p", {}, "No word of the query; it was found by its code."), score];
  const parts = [...listed.map(([word, share]) => [word, share / total, "by-word"]), ...(code > 0 ? [["meaning (code)", code / total, "by-code"]] : [])];
  const most = Math.max(...parts.map(([, share]) => share));
  const shown = parts.slice(0, 7), rest = parts.slice(7);
  if (rest.length) shown.push([`${rest.length} more`, rest.reduce((sum, [, share]) => sum + share, 0), "by-word"]);
  return [...shown.map(([name, share, kind]) => bar(name, share, most, kind)),
    listed.length ? null : el("p", { class: "quiet" }, "It has no word of the query, and is about the same things."), score];
}
