// The list of hits: the title first, below it the id, then the passage with the words of the query.

import { chip, isChoice, nameOf as fieldName } from "./fields.js";
import { copyText, counted, el, marked } from "./dom.js";
import { icon } from "./icons.js";
import { whyPanel } from "./why.js";

/** A field's value in a line. */
export function valueText(value) {
  if (Array.isArray(value)) return value.map(valueText).join(", ");
  return value !== null && typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** The id of a document with a button that copies it; nothing if the id is its title. */
export function idLine(id, title) {
  const text = el("code", {}, String(id));
  const button = el("button", { class: "copy", type: "button", "aria-label": "Copy the id", title: "Copy the id" }, icon("copy"), icon("check"));
  button.addEventListener("click", () => copyText(button, String(id), text));
  return el("div", { class: "id" }, String(id) === title ? null : text, button);
}

/** The values of a field that are ticked in a list, as chips. */
export function chips(fields, where) {
  return Object.entries(fields).filter(([name]) => isChoice(name)).flatMap(([name, values]) =>
    [values].flat().filter((value) => typeof value === "string").map((value) => chip(name, value, (where[name]?.in ?? []).includes(value))));
}

const SHOWN = 2; // other fields of a hit; the document shows all
const LONG = 48;

function facts({ fields, title }) {
  const others = Object.entries(fields).filter(([name, value]) => !isChoice(name) && value !== null && value !== title && valueText(value).length <= LONG);
  return others.slice(0, SHOWN).map(([name, value]) => el("span", { class: "fact" }, `${fieldName(name)} `, el("b", {}, valueText(value))));
}

/** A passage without the title that it begins with, which stands above it. */
function below(title, snippet) {
  const start = title.replace(/…$/, "");
  // Lines of dashes and the like only fill a passage.
  const rest = snippet.map((piece) => ({ ...piece, text: piece.mark ? piece.text : piece.text.replace(/([-=~*_#+.])\1{3,}/g, " ") }));
  if (!rest.map(({ text }) => text).join("").trimStart().startsWith(start)) return rest;
  rest[0].text = rest[0].text.trimStart();
  for (let left = start.length; left > 0 && rest.length; ) {
    const part = rest[0].text.slice(0, left).length;
    rest[0].text = rest[0].text.slice(part);
    left -= part;
    if (!rest[0].text) rest.shift();
  }
  if (rest.length) rest[0].text = rest[0].text.replace(/^[\s.:;,–-]+/, "");
  return rest;
}

function hitOf(hit, place, answer, about, where, acts, copy = false) {
  const title = el("a", { class: "title", href: acts.linkTo(hit.id), tabindex: "-1" }, hit.title);
  const passage = below(hit.title, hit.snippet);
  const why = el("div", { class: "why", hidden: true });
  const whyButton = el("button", { class: "plain why-button", type: "button", "aria-expanded": "false" }, icon("why"), "Why");
  whyButton.addEventListener("click", async () => {
    const open = why.hidden;
    why.hidden = !open;
    whyButton.setAttribute("aria-expanded", String(open));
    if (open) await whyPanel(why, hit, answer, about, acts);
  });
  const article = el("article", { class: copy ? "hit copy-hit" : "hit", "aria-label": `${place + 1}. ${hit.title}` },
    el("h2", { class: "head" }, title),
    idLine(hit.id, hit.title),
    passage.length ? el("p", { class: "passage" }, marked(passage)) : null,
    el("div", { class: "foot" },
      el("div", { class: "meta" }, chips(hit.fields, where), facts(hit)),
      el("div", { class: "acts" },
        hit.copies.length ? copiesButton(hit, place, answer, about, where, acts) : null,
        whyButton,
        el("button", { class: "plain", type: "button", onclick: () => acts.like(hit.id) }, icon("like"), "More like this"))),
    why);
  title.addEventListener("click", (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return; // a new tab, as with any link
    event.preventDefault();
    acts.open(hit.id);
  });
  article.addEventListener("click", (event) => {
    // A click anywhere opens, but not one on a button, and not the end of selecting text.
    if (event.target.closest("button, a, .why, .copies") || String(getSelection())) return;
    acts.open(hit.id);
  });
  article.addEventListener("pointerenter", () => acts.point(hit.id));
  article.addEventListener("pointerleave", () => acts.point(null));
  article.addEventListener("focusin", () => acts.point(hit.id));
  article.hit = hit;
  return article;
}

function copiesButton(hit, place, answer, about, where, acts) {
  const many = hit.copies.length === 1 ? "1 near copy" : `${hit.copies.length} near copies`;
  const button = el("button", { class: "plain copies-button", type: "button", "aria-expanded": "false" }, icon("layers"), many);
  button.addEventListener("click", () => {
    const article = button.closest(".hit");
    const shown = article.querySelector(".copies");
    button.setAttribute("aria-expanded", String(!shown));
    if (shown) shown.remove();
    else article.append(el("div", { class: "copies", role: "group", "aria-label": many }, hit.copies.map((copy) => hitOf({ ...copy, copies: [] }, place, answer, about, where, acts, true))));
  });
  return button;
}

// Tab goes to one hit and its buttons, arrows to the others: a hundred hits are no obstacle on the way to the map.
function reachable(article, yes) {
  for (const stop of [article, ...article.querySelectorAll("button")]) stop.tabIndex = yes ? 0 : -1;
}

export class Hits {
  constructor(list, acts) {
    Object.assign(this, { list, acts });
  }

  /** Show other hits, at once: nothing blinks in between. Who was in the list is then at its first hit. */
  show(answer, about, where) {
    const inside = this.list.contains(document.activeElement);
    this.list.replaceChildren(...answer.hits.map((hit, place) => {
      const article = hitOf(hit, place, answer, about, where, this.acts);
      reachable(article, place === 0);
      return el("li", {}, article);
    }));
    if (inside) this.focus(0);
  }

  clear() {
    this.list.replaceChildren();
  }

  get articles() {
    return [...this.list.querySelectorAll("li > .hit")];
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

  /** Open or close the reasons of the hit that has the focus. */
  explain() {
    this.articles[this.place]?.querySelector(".why-button").click();
  }

  /** Mark the hit that the map points at. */
  point(id) {
    for (const article of this.articles) article.classList.toggle("pointed", id !== null && article.hit.id === id);
  }
}

/** How many documents an answer shows, copies included. */
export const countOf = (hits) => hits.reduce((sum, hit) => sum + 1 + hit.copies.length, 0);

export const hitsText = (hits) => {
  const copies = countOf(hits) - hits.length;
  return copies ? `${counted(hits.length, "hit")} and ${copies === 1 ? "1 near copy" : `${copies} near copies`}` : counted(hits.length, "hit");
};
