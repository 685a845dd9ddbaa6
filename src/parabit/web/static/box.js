// The search box: it grows with its text; what can be written in it is explained below.

import { $, debounced, el, put } from "./dom.js";
import { change, settle } from "./state.js";

const WAIT = 120; // milliseconds after a key until the search

const typed = debounced(() => change({ q: $("query").value, like: [] }, "typing"), WAIT);

/** Search now for what is typed, as an entry of the history of its own. */
export function commit() {
  typed.now();
  settle();
}

export function clear() {
  typed.drop();
  $("query").value = "";
  fit();
  change({ q: "", like: [] });
  $("query").focus();
}

export function setUpBox() {
  $("query").addEventListener("input", () => { fit(); typed(); });
  $("clear").addEventListener("click", clear);
  $("ask").addEventListener("submit", (event) => { event.preventDefault(); commit(); });
  new ResizeObserver(() => { if ($("query").clientWidth !== width) fit(); }).observe($("query"));
}

let width = 0;

function fit() {
  const box = $("query");
  $("clear").hidden = !box.value;
  $("slash").hidden = Boolean(box.value);
  box.style.height = "auto";
  box.style.height = `${box.scrollHeight}px`;
  width = box.clientWidth;
}

/** Show the text of the state, unless somebody is typing another. */
export function showText({ q }) {
  const box = $("query");
  if (box.value !== q && !(document.activeElement === box && box.value.trim() === q.trim())) {
    typed.drop();
    box.value = q;
  }
  fit();
}

/** An index without a model cannot be searched by text, and one without words knows no operators. */
export function offer(about, fields) {
  $("query").disabled = !about.texts;
  $("query").maxLength = about.limits.characters;
  $("box").classList.toggle("disabled", !about.texts);
  $("query").placeholder = about.texts ? (about.words ? "Search by meaning and by words" : "Search by meaning") : "This index has no model to search by text";
  const code = (text) => el("code", { class: text.length > 15 ? "only-wide" : null }, text); // a phone has room for one line
  const [field] = fields.filter(({ kind }) => kind !== "string").concat(fields);
  const parts = [[code('"a phrase"')], [code("+must")], [code("-not")], [code("begin*")]];
  if (field) parts.push([code(`${field.name}:${/\s/.test(example(field)) ? `"${example(field)}"` : example(field)}`)]);
  put($("query-note"), about.texts && about.words ? [el("span", { class: "only-wide" }, "You can write "), parts.map((part, at) => [at ? " " : "", part])] : about.texts ? "Documents are found by meaning alone: this index keeps no words." : "");
}

const example = ({ values, least }) => String(values[0]?.[0] ?? least ?? "value");
