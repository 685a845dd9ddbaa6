// Filters: one for every field of the documents, by its type. Choices are ticked in a list, numbers and dates have a
// range, strings must be equal. What is set stands below as chips.

import { colourOf } from "./colours.js";
import { $, counted, debounced, el, number, put } from "./dom.js";
import { icon } from "./icons.js";
import { popover } from "./options.js";
import { change, current, filter, toggle } from "./state.js";

const SHOWN = 4; // filters that are always there; the others come with a button
const ICONS = { choice: "tag", boolean: "check", number: "range", date: "calendar", string: "text" };
const ORDER = ["choice", "date", "number", "boolean", "string"];

let fields = []; // of the index
let more = false; // whether all are shown
const panels = new Map(); // what is open, by the field's name

/** The field that gives labels their colours, if there is one. */
export const colouring = () => (fields.find(({ name }) => name === "labels") ?? fields.find(({ kind }) => kind === "choice")) ?? null;

/** Whether a field's values are ticked in a list. */
export const isChoice = (name) => (fields.length ? fields.some((field) => field.name === name && field.kind === "choice") : name === "labels");

export const nameOf = (name) => name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " ");

/** A value of a field as a button that searches in it alone, or no longer. */
export function chip(name, value, pressed) {
  const dot = el("span", { class: "dot", "aria-hidden": "true" });
  dot.style.setProperty("--dot", colourOf(value));
  return el("button", {
    class: "chip", type: "button", "aria-pressed": String(pressed), onclick: () => toggle(name, value),
    title: pressed ? `Do not search in ${value} alone` : `Search in ${value} alone`,
  }, colouring()?.name === name ? dot : null, el("span", {}, value));
}

/** Take the fields of the index. */
export function setFields(answer) {
  fields = [...answer].sort((one, other) => ORDER.indexOf(one.kind) - ORDER.indexOf(other.kind) || (other.name === "labels") - (one.name === "labels"));
  panels.clear();
  const controls = fields.map((field) => control(field));
  const rest = controls.slice(SHOWN);
  const button = el("button", { class: "pick quiet-pick", type: "button", "aria-expanded": String(more), id: "more-fields" });
  const fold = () => {
    rest.forEach((one) => { one.hidden = !more; });
    put(button, more ? "Fewer filters" : `${rest.length} more`);
    button.setAttribute("aria-expanded", String(more));
  };
  button.addEventListener("click", () => { more = !more; fold(); });
  if (rest.length) fold();
  put($("fields"), controls, rest.length ? button : null);
  show(current());
}

function control(field) {
  const text = el("span", { class: "pick-text" });
  const button = el("button", { class: "pick", type: "button", "aria-expanded": "false", "aria-haspopup": "dialog" },
    icon(ICONS[field.kind]), text, icon("down"));
  const panel = el("div", { class: "panel", role: "dialog", "aria-label": nameOf(field.name), hidden: true });
  const home = el("div", { class: "control popover-home", "data-field": field.name }, button, panel);
  const parts = field.kind === "choice" || field.kind === "boolean" ? list(field, panel) : field.kind === "string" ? equality(field, panel) : range(field, panel);
  const pop = popover(home, button, panel, parts);
  panels.set(field.name, { field, button, text, refill: () => { if (pop.isOpen()) parts(); } });
  return home;
}

const foot = (name, note) => el("div", { class: "panel-foot" }, el("span", { class: "quiet" }, note),
  el("button", { class: "plain", type: "button", onclick: () => filter(name, null), hidden: !current().where[name] }, "Clear"));

function list(field, panel) {
  const search = el("input", { type: "search", placeholder: `Find in ${nameOf(field.name).toLowerCase()}`, "aria-label": `Find in ${field.name}`, spellcheck: "false" });
  const rows = el("ul", { class: "choices" });
  const bottom = el("div");
  search.addEventListener("input", () => fill());
  panel.addEventListener("keydown", (event) => {
    const stops = [search, ...rows.querySelectorAll("input")].filter((stop) => !stop.hidden);
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const at = stops.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1);
      stops[Math.min(Math.max(at, 0), stops.length - 1)].focus();
    } else if (event.key === "Enter" && event.target === search) {
      if (search.value.trim()) rows.querySelector("input")?.click();
    } else if (event.key === "Enter" && event.target.type === "checkbox") event.target.click();
    else return;
    event.preventDefault();
  });
  const fill = () => {
    const chosen = current().where[field.name]?.in ?? [];
    const wanted = search.value.trim().toLowerCase();
    // A value of the address that the list does not have can be taken off here, too.
    const others = chosen.filter((value) => !field.values.some(([one]) => one === value)).map((value) => [value, null]);
    const found = [...others, ...field.values].filter(([value]) => String(value).toLowerCase().includes(wanted));
    const focused = rows.contains(document.activeElement) ? document.activeElement.value : null;
    put(rows, found.length ? found.map((one) => row(field, one, chosen)) : el("li", { class: "quiet none" }, "No value has this in its name"));
    if (focused !== null) [...rows.querySelectorAll("input")].find((box) => box.value === focused)?.focus();
    put(bottom, foot(field.name, `${counted(field.values.length, "value")}${field.complete ? "" : "; rare ones may be missing"}`));
  };
  search.hidden = field.values.length < 8;
  put(panel, search, rows, bottom);
  return fill;
}

function row({ name }, [value, documents], chosen) {
  const box = el("input", { type: "checkbox", value: String(value), onchange: () => toggle(name, value) });
  box.checked = chosen.includes(value);
  const dot = el("span", { class: "dot", "aria-hidden": "true" });
  dot.style.setProperty("--dot", colourOf(value));
  return el("li", {}, el("label", {}, box, colouring()?.name === name ? dot : null, el("span", { class: "name" }, String(value)),
    documents === null ? null : el("span", { class: "quiet" }, number(documents))));
}

function range(field, panel) {
  const dates = field.kind === "date";
  const input = (label, bound) => el("input", {
    type: dates ? "date" : "number", step: dates ? null : "any", "aria-label": `${nameOf(field.name)} ${label}`, placeholder: dates ? null : plain(bound),
    min: dates ? field.least : null, max: dates ? field.most : null,
  });
  const from = input("from", field.least), to = input("to", field.most), bottom = el("div");
  const value = ({ value: written }) => (written === "" ? undefined : dates ? written : Number(written));
  const search = debounced(() => filter(field.name, { min: value(from), max: value(to) }, "replace"), 250);
  for (const one of [from, to]) {
    one.addEventListener("input", search);
    one.addEventListener("change", () => search.now());
    one.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); search.now(); } });
  }
  put(panel, el("div", { class: "range" }, el("label", {}, "From", from), el("label", {}, "To", to)), bottom);
  return () => {
    const { min, max } = current().where[field.name] ?? {};
    if (document.activeElement !== from) from.value = min ?? "";
    if (document.activeElement !== to) to.value = max ?? "";
    put(bottom, foot(field.name, `${plain(field.least)} to ${plain(field.most)}`));
  };
}

function equality(field, panel) {
  const input = el("input", { type: "text", "aria-label": `${nameOf(field.name)} is`, placeholder: "exactly …", spellcheck: "false" }), bottom = el("div");
  const search = debounced(() => {
    const text = input.value.trim();
    // What is written as a number may be stored as one.
    filter(field.name, { in: text === "" ? [] : /^-?\d+(\.\d+)?$/.test(text) ? [text, Number(text)] : [text] }, "replace");
  }, 300);
  input.addEventListener("input", search);
  input.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); search.now(); } });
  put(panel, el("label", { class: "equality" }, "Is", input), bottom);
  return () => {
    if (document.activeElement !== input) input.value = current().where[field.name]?.in?.[0] ?? "";
    put(bottom, foot(field.name, "the whole value"));
  };
}

const plain = (bound) => (bound === null ? "" : String(bound));

/** A condition in words. */
export function conditionText(name, { in: values, min, max }) {
  if (values) return `${nameOf(name)}: ${values.filter((value) => typeof value === "string" || !values.includes(String(value))).join(", ")}`;
  if (min === undefined) return `${nameOf(name)} up to ${max}`;
  return max === undefined ? `${nameOf(name)} from ${min}` : `${nameOf(name)} ${min} to ${max}`;
}

/** Show which filters are set. */
export function show({ where }) {
  for (const [name, { button, text, refill }] of panels) {
    const chosen = where[name]?.in ?? [];
    button.classList.toggle("set", name in where);
    put(text, nameOf(name), chosen.length > 1 ? el("b", { class: "badge" }, chosen.length) : null);
    refill();
  }
  const set = Object.entries(where);
  $("active").hidden = !set.length;
  $("filters-count").hidden = !set.length;
  put($("filters-count"), set.length);
  put($("active"),
    set.flatMap(([name, condition]) => (condition.in && isChoice(name)
      ? condition.in.map((value) => off(`${nameOf(name)}: ${value}`, () => toggle(name, value)))
      : [off(conditionText(name, condition), () => filter(name, null))])),
    set.length > 1 ? el("button", { class: "plain", type: "button", onclick: () => change({ where: {} }) }, "Clear all") : null);
}

const off = (text, onclick) => el("button", { class: "chip set", type: "button", onclick, "aria-label": `Remove the filter ${text}` }, el("span", {}, text), icon("close"));
