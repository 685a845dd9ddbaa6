// The search box: it grows with its text, and the code of the text stands beside it.

import { blankGrid, grid } from "./bits.js";
import { $, counted, debounced, put } from "./dom.js";
import { cellFor } from "./hits.js";
import { change, current, settle } from "./state.js";

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

/** An index without a model cannot be asked by text. */
export function disable(why) {
  $("query").disabled = true;
  $("query").placeholder = "This index has no model to search by text";
  $("box").classList.add("disabled");
  put($("query-note"), why);
  $("query-note").hidden = false;
}

export function enable(limit) {
  $("query").disabled = false;
  $("query").maxLength = limit;
  $("box").classList.remove("disabled");
  $("query-note").hidden = true;
}

/** Draw the code of the query, or a blank. */
export function showCode(code, bits) {
  const cell = Math.min(cellFor(bits), 5);
  const told = current().like.length ? "The document's code" : "The query's code";
  put($("own-code"), code === null ? blankGrid(bits, cell) : grid(code, bits, { cell, label: `${told}, ${counted(bits, "bit")}` }));
  $("own-code").title = code === null ? "" : `${told}: ${counted(bits, "bit")}`;
  $("own-code").classList.toggle("blank", code === null);
}
