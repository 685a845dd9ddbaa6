// The filter by label: a searchable list with counts, and what is chosen as chips.

import { colourOf } from "./colours.js";
import { $, counted, el, number, put } from "./dom.js";
import { chip } from "./hits.js";
import { change, current } from "./state.js";

let known = []; // [{label, documents}], most documents first
let complete = true;

export const isOpen = () => !$("labels-panel").hidden;

export function setUpLabels() {
  $("labels-button").addEventListener("click", () => (isOpen() ? close() : open()));
  $("labels-search").addEventListener("input", list);
  $("labels-clear").addEventListener("click", () => { change({ labels: [] }); $("labels-search").focus(); });
  $("labels-panel").addEventListener("keydown", move);
  document.addEventListener("pointerdown", (event) => {
    if (isOpen() && !$("label-filter").contains(event.target)) close();
  });
  $("label-filter").addEventListener("focusout", (event) => {
    if (isOpen() && event.relatedTarget && !$("label-filter").contains(event.relatedTarget)) close();
  });
}

function open() {
  $("labels-panel").hidden = false;
  $("labels-button").setAttribute("aria-expanded", "true");
  $("labels-search").value = "";
  list();
  $("labels-search").focus();
}

/** Close the list; `back` returns to its button. */
export function close(back = false) {
  $("labels-panel").hidden = true;
  $("labels-button").setAttribute("aria-expanded", "false");
  if (back) $("labels-button").focus();
}

function move(event) {
  if (event.key === "Escape") {
    event.stopPropagation();
    event.preventDefault();
    close(true);
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    const stops = [$("labels-search"), ...$("labels-list").querySelectorAll("input")];
    const at = stops.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1);
    stops[Math.min(Math.max(at, 0), stops.length - 1)].focus();
  } else if (event.key === "Enter" && event.target === $("labels-search")) {
    event.preventDefault();
    const first = $("labels-list").querySelector("input");
    if ($("labels-search").value.trim() && first) toggle(first.value);
  } else if (event.key === "Enter" && event.target.type === "checkbox") {
    event.preventDefault();
    toggle(event.target.value);
  }
}

/** Search in a label too, or no longer. */
export function toggle(label) {
  const { labels } = current();
  change({ labels: labels.includes(label) ? labels.filter((other) => other !== label) : [...labels, label] });
}

/** Take the labels of the index. */
export function setLabels(answer) {
  known = answer.labels;
  complete = answer.complete;
  show(current());
}

function list() {
  const { labels } = current();
  const wanted = $("labels-search").value.trim().toLowerCase();
  const found = known.filter(({ label }) => label.toLowerCase().includes(wanted));
  // A label of the address that the list does not know can be taken off here, too.
  const others = labels.filter((label) => !known.some((entry) => entry.label === label) && label.toLowerCase().includes(wanted));
  const rows = [...others.map((label) => ({ label, documents: null })), ...found];
  const focused = document.activeElement?.closest("#labels-list") ? document.activeElement.value : null;
  put($("labels-list"), rows.length ? rows.map((row) => rowOf(row, labels)) : el("li", { class: "quiet none" }, "No label has this in its name"));
  if (focused !== null) [...$("labels-list").querySelectorAll("input")].find((box) => box.value === focused)?.focus();
  put($("labels-note"), complete ? counted(known.length, "label") : `${number(known.length)} labels of a sample`);
  $("labels-clear").hidden = !labels.length;
}

function rowOf({ label, documents }, labels) {
  const box = el("input", { type: "checkbox", value: label, onchange: () => toggle(label) });
  box.checked = labels.includes(label);
  const dot = el("span", { class: "dot", "aria-hidden": "true" });
  dot.style.setProperty("--dot", colourOf(label));
  return el("li", {}, el("label", {}, box, dot, el("span", { class: "name" }, label),
    documents === null ? null : el("span", { class: "quiet" }, number(documents))));
}

/** Show which labels are searched. */
export function show({ labels }) {
  $("label-filter").hidden = !known.length && !labels.length;
  put($("labels-told"), labels.length === 0 ? "All labels" : labels.length === 1 ? labels[0] : counted(labels.length, "label"));
  $("labels-button").classList.toggle("set", labels.length > 0);
  const chips = $("active-labels");
  chips.hidden = labels.length < 2;
  put(chips, labels.map((label) => chip(label, { pressed: true, onclick: () => toggle(label) })));
  if (isOpen()) list();
}
