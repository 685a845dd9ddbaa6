// The list of hits.

import { grid } from "./bits.js";
import { colourOf } from "./colours.js";
import { counted, el, marked } from "./dom.js";
import { icon } from "./icons.js";

/** A label as a button that searches in it alone. */
export function chip(label, { pressed = false, onclick }) {
  const dot = el("span", { class: "dot", "aria-hidden": "true" });
  dot.style.setProperty("--dot", colourOf(label));
  return el("button", {
    class: "chip", type: "button", "aria-pressed": String(pressed), onclick,
    title: pressed ? `Do not search in ${label} alone` : `Search in ${label} alone`,
  }, dot, el("span", {}, label));
}

/** What a document is called: its title where it has one, else its id. */
export function nameOf({ id, fields }) {
  for (const field of ["title", "subject", "headline", "name"]) {
    const value = fields?.[field];
    if (typeof value === "string" && value.trim()) return { name: value.trim(), field };
  }
  return { name: String(id), field: null };
}

/** A field's value in a line. */
export function told(value) {
  if (Array.isArray(value)) return value.map(told).join(", ");
  return value !== null && typeof value === "object" ? JSON.stringify(value) : String(value);
}

const SHOWN = 3; // fields beside a hit; the document shows all
const LONG = 60;

function facts(hit, field) {
  const others = Object.entries(hit.fields ?? {}).filter(([name, value]) => name !== field && told(value).length <= LONG);
  return others.slice(0, SHOWN).map(([name, value]) => el("span", { class: "fact" }, `${name} `, el("b", {}, told(value))));
}

function hitOf(hit, place, answer, about, labels, acts) {
  const { name, field } = nameOf(hit);
  const about_bits = `${hit.distance} of ${counted(about.bits, "bit")}`;
  const title = el("a", { class: "title", href: acts.linkTo(hit.id), tabindex: "-1" }, name);
  const passage = hit.passage.length ? el("p", { class: "passage" }, marked(hit.passage)) : null;
  const article = el("article", {
    class: "hit", "aria-label": `${place + 1}. ${name}, differs in ${about_bits}`,
  },
    el("div", { class: "place", "aria-hidden": "true" }, place + 1),
    el("div", { class: "body" },
      el("div", { class: "head" },
        title,
        field ? el("span", { class: "id" }, String(hit.id)) : null,
        hit.labels.map((label) => chip(label, {
          pressed: labels.includes(label), onclick: () => acts.filter(label),
        })),
      ),
      passage,
      el("div", { class: "foot" },
        el("button", { class: "plain like", type: "button", onclick: () => acts.like(hit.id) },
          icon("like"), "More like this"),
        el("button", { class: "plain", type: "button", onclick: () => acts.open(hit.id) }, icon("open"), "Open"),
        facts(hit, field),
      ),
    ),
    el("div", { class: "measure" },
      grid(hit.code, about.bits, { other: answer.code, cell: cellFor(about.bits) }),
      el("span", { class: "distance", title: "Bits in which its code differs from the query's (Hamming distance)" },
        el("b", {}, hit.distance), ` of ${counted(about.bits, "bit")}`),
      el("span", { class: "score", title: `Score of the rank ${answer.rank}; higher is better` }, `score ${hit.score.toFixed(3)}`),
    ),
  );
  title.addEventListener("click", (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return; // a new tab, as with any link
    event.preventDefault();
    acts.open(hit.id);
  });
  article.addEventListener("click", (event) => {
    // A click anywhere opens, but not one on a button, and not the end of selecting text.
    if (event.target.closest("button, a") || String(getSelection())) return;
    acts.open(hit.id);
  });
  article.addEventListener("pointerenter", () => acts.point(hit.id));
  article.addEventListener("pointerleave", () => acts.point(null));
  article.addEventListener("focusin", () => acts.point(hit.id));
  article.hit = hit;
  reachable(article, place === 0);
  return el("li", {}, article);
}

// Tab goes to one hit and its buttons, arrows to the others: a hundred hits are no obstacle on the way to the map.
function reachable(article, yes) {
  for (const stop of [article, ...article.querySelectorAll("button")]) stop.tabIndex = yes ? 0 : -1;
}

/** The size of a bit in a list: longer codes have smaller ones. */
export const cellFor = (bits) => (bits <= 64 ? 8 : bits <= 160 ? 6 : bits <= 320 ? 4.5 : 3);

export class Hits {
  constructor(list, acts) {
    Object.assign(this, { list, acts });
  }

  /** Show other hits, at once: nothing blinks in between. Who was in the list is then at its first hit. */
  show(answer, about, labels) {
    const inside = this.list.contains(document.activeElement);
    const items = answer.hits.map((hit, place) => hitOf(hit, place, answer, about, labels, this.acts));
    this.list.replaceChildren(...items);
    if (inside) this.focus(0);
  }

  clear() {
    this.list.replaceChildren();
  }

  get articles() {
    return [...this.list.querySelectorAll(".hit")];
  }

  /** The place of the hit that has the focus, or -1. */
  get place() {
    return this.articles.findIndex((article) => article.contains(document.activeElement));
  }

  /** The hit that has the focus. */
  get focused() {
    return this.articles[this.place]?.hit ?? null;
  }

  /** Go to a hit; one beyond the ends is the last or the first. */
  focus(place) {
    const articles = this.articles;
    if (!articles.length) return;
    const at = Math.min(Math.max(place, 0), articles.length - 1);
    articles.forEach((article, other) => reachable(article, other === at));
    articles[at].focus({ preventScroll: true });
    articles[at].scrollIntoView({ block: "nearest" });
  }

  /** Mark the hit that the map points at. */
  point(id) {
    for (const article of this.articles) article.classList.toggle("pointed", id !== null && article.hit.id === id);
  }
}
