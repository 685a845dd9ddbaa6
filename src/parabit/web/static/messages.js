// What is said if there are no hits to show: a start, no hits, unknown words, an empty index, an error.

import { $, counted, el, put } from "./dom.js";
import { conditionText } from "./fields.js";
import { valueText } from "./hits.js";
import { radiusText } from "./options.js";
import { change } from "./state.js";

function say(...children) {
  put($("message"), children);
  $("message").hidden = false;
}

export function quiet() {
  $("message").hidden = true;
  $("message").replaceChildren();
}

const button = (text, onclick) => el("button", { class: "button", type: "button", onclick }, text);

function examples(start, acts) {
  if (!start?.examples.length) return null;
  return el("div", { class: "examples", role: "group", "aria-label": "Examples" },
    start.examples.map((example) => el("button", { class: "example", type: "button", onclick: () => acts.ask(example) }, example)));
}

function recent({ recent: documents, recent_by: by }, acts) {
  if (!documents.length) return null;
  const open = (id) => (event) => { event.preventDefault(); acts.open(id); };
  return el("section", { class: "recent", "aria-label": "Recent documents" },
    el("h3", {}, by ? "Newest documents" : "Added last"),
    el("ul", {}, documents.map(({ id, title, fields }) => el("li", {},
      el("a", { href: acts.linkTo(id), onclick: open(id) }, title),
      el("span", { class: "quiet" }, [by ? valueText(fields[by]).slice(0, 10) : null, String(id) === title ? null : String(id)].filter(Boolean).join(" · "))))));
}

/** What cannot be done with this index, if anything. */
export function missing(about) {
  if (!about.texts) return "This index holds codes without a model, so it cannot be searched with a text. Open a document on the map or below, then ask for more like it.";
  if (!about.text_kept) return "This index keeps no texts: hits have no passages, and documents are found by the meaning of their codes alone, not by their words.";
  if (!about.words) return "This index keeps no words: documents are found by the meaning of their codes, and names or rare words may be missed.";
  return null;
}

/** What the collection is, and what to ask it. */
export function welcome(about, start, acts) {
  const lacks = missing(about);
  say(
    el("h2", { class: "welcome" }, about.texts ? "What are you looking for?" : "A collection of codes"),
    el("p", { class: "lead" }, about.texts
      ? "Type a question, a few words, or paste a whole text. Documents are found by their words and by what they are about."
      : `${counted(about.documents, "document")}, each a code of ${counted(about.bits, "bit")}.`),
    lacks ? el("p", { class: "lacks" }, lacks) : null,
    about.texts ? examples(start, acts) : null,
    start ? recent(start, acts) : null);
}

export function emptyIndex(about) {
  say(
    el("h2", { class: "welcome" }, "No documents yet"),
    el("p", {}, `${about.name} is an empty index. Add documents, and they can be found here within a second:`),
    el("pre", {}, el("code", {}, about.texts ? `parabit add ${about.name} FOLDER-OR-FILE` : "Index.open(folder, write=True).put_codes(codes, ids)")));
}

export function unknown(query, start, acts) {
  say(
    el("h2", {}, "No document has these words"),
    el("p", {}, "Nothing in this collection has a word of ", el("q", {}, query.length > 80 ? `${query.slice(0, 80)}…` : query),
      ". Try words that its documents use", start?.examples.length ? ", for example:" : "."),
    examples(start, acts));
}

export function noHits(state) {
  const { radius, where } = state;
  const filters = Object.entries(where).map(([name, condition]) => conditionText(name, condition));
  const code = radius === null ? "" : ` whose code differs in at most ${radiusText(radius)}`;
  say(
    el("h2", {}, "Nothing found"),
    el("p", {}, `No document${code} fits${filters.length ? ` the filters (${filters.join("; ")})` : " the query"}.`),
    el("div", { class: "buttons" },
      filters.length ? button("Remove the filters", () => change({ where: {} })) : null,
      radius === null ? null : button("At any distance", () => change({ radius: null }))));
}

/** An error; `wait` is when the search is tried again by itself, in seconds. */
export function failed(error, wait, again) {
  const busy = error.status === 503;
  say(
    el("h2", {}, busy ? "The server is busy" : error.status === 401 ? "A token is needed" : "That did not work"),
    el("p", { class: "wrong" }, sentence(error.message), error.hint ? ` ${sentence(error.hint)}` : ""),
    wait ? el("p", { class: "quiet" }, `Trying again in ${wait < 1.5 ? "a second" : `${Math.round(wait)} seconds`} …`)
      : el("div", { class: "buttons" }, button(error.status === 401 ? "Give the token" : "Try again", again)));
}

/** What was done with the query: words that no document has, and words that were corrected. */
export function notes({ unknown: words, corrected, notes: all, known }) {
  const structured = new RegExp("^(no document has .*|searched for .* instead of .*)$", "s");
  const lines = [
    ...Object.entries(corrected).map(([wrong, right]) => el("p", {}, "Showing hits for ", el("b", {}, right), ". No document has ", el("s", {}, wrong), ".")),
    known && words.length ? el("p", {}, "No document has ", words.map((word, at) => [at ? ", " : "", el("s", {}, word)]), ".") : null,
    ...all.filter((note) => !structured.test(note) || /all that is required|the whole value$/.test(note)).map((note) => el("p", {}, sentence(note))),
  ].filter(Boolean);
  $("notes").hidden = !lines.length;
  put($("notes"), lines);
}

/** A line of the server's as a sentence. */
export function sentence(text) {
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(begun) ? begun : `${begun}.`;
}
