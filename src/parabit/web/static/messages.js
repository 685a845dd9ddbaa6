// What is said where there are no hits to show: a welcome, no hits, unknown words, an empty index, an error.

import { $, counted, el, number, put } from "./dom.js";
import { radiusTold } from "./filters.js";
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

function examples(about, ask) {
  if (!about.examples?.length) return null;
  return el("div", { class: "examples" },
    el("p", { class: "quiet" }, "For example"),
    about.examples.map((example) => el("button", { class: "example", type: "button", onclick: () => ask(example) }, example)));
}

/** What the collection is, and what to ask it. */
export function welcome(about, ask) {
  const bytes = Math.ceil(about.bits / 8);
  const facts = [
    [number(about.documents), about.documents === 1 ? "document" : "documents"],
    [number(about.bits), "bits a document"],
    [number(bytes), bytes === 1 ? "byte a document" : "bytes a document"],
  ];
  say(
    el("h1", {}, about.texts ? "What are you looking for?" : "A collection of codes"),
    el("dl", { class: "facts" }, facts.map(([value, what]) => el("div", {}, el("dd", {}, value), el("dt", {}, what)))),
    about.texts
      ? el("p", {}, "Every document here is a code of ", counted(about.bits, "bit"), ". A text that you type becomes one, too, and documents whose ",
        "codes differ from it in few bits are about the same things.")
      : el("p", {}, "This index was made of codes, without a model that turns texts into codes: a text cannot be searched for here. ",
        "Open a document on the map, then ask for more like it."),
    examples(about, ask));
}

export function emptyIndex(about) {
  say(
    el("h1", {}, "No documents yet"),
    el("p", {}, `${about.name} is an empty index. Add documents to it, and they can be found here at once:`),
    el("pre", {}, el("code", {}, about.texts ? `parabit add ${about.name} FOLDER-OR-FILE` : "Index.open(folder, write=True).put_codes(codes, ids)")));
}

export function unknown(query, about, ask) {
  say(
    el("h2", {}, "Unknown words"),
    el("p", {}, "No document has a word of ", el("q", {}, query.length > 80 ? `${query.slice(0, 80)}…` : query),
      ". Use words that documents of this collection use."),
    examples(about, ask));
}

export function noHits(state) {
  const { radius, labels } = state;
  const where = labels.length ? ` with the label${labels.length > 1 ? "s" : ""} ${labels.join(", ")}` : "";
  const what = radius === null ? "No document" : radius === 0 ? "No document with the same code" : `No document within ${radiusTold(radius)}`;
  say(
    el("h2", {}, "Nothing found"),
    el("p", {}, `${what}${where}.`),
    el("div", { class: "buttons" },
      radius === null ? null : button("At any distance", () => change({ radius: null })),
      labels.length ? button("With any label", () => change({ labels: [] })) : null));
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

/** A line of the server's as a sentence. */
export function sentence(text) {
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(begun) ? begun : `${begun}.`;
}
