// What is asked and shown, kept in the address: links, reloads and the back button give it again.

const LONGEST = 4000; // characters of a query that go into the address; a longer one lives in the history alone

/** `where` has a condition per field: {in: [values], min, max}, each part optional. */
export const START = { q: "", like: [], k: 10, radius: null, rank: null, copies: true, where: {}, doc: null };

let state = START;
let typing = false; // whether the last entry of the history was made by typing, and may be written over
const listeners = [];

export const current = () => state;
export const onChange = (listener) => listeners.push(listener);

/** The document that others are like, if any: the last of the trail. */
export const likeness = ({ like }) => (like.length ? like[like.length - 1] : null);

/** Whether there is anything to look for. */
export const asks = (of) => of.like.length > 0 || of.q.trim() !== "";

// Ids and values are strings, numbers or booleans. In the address a string that looks like another kind stands in quotes.
const OTHER = /^(-?\d+(\.\d+)?([eE][+-]?\d+)?|true|false|null|".*)$/s;
const writeValue = (value) => (typeof value === "string" && OTHER.test(value) ? JSON.stringify(value) : String(value));

function readValue(written) {
  if (!OTHER.test(written)) return written;
  try {
    const value = JSON.parse(written);
    return Number.isInteger(value) && !Number.isSafeInteger(value) ? written : value;
  } catch { return written; }
}

/** A state as the part of an address after #. */
export function write({ q, like, k, radius, rank, copies, where, doc }) {
  const parts = new URLSearchParams();
  if (q && q.length <= LONGEST) parts.append("q", q);
  for (const id of like) parts.append("like", writeValue(id));
  if (k !== START.k) parts.append("k", k);
  if (radius !== null) parts.append("radius", radius);
  if (rank !== null) parts.append("rank", rank);
  if (!copies) parts.append("copies", "all");
  for (const [name, { in: values = [], min, max }] of Object.entries(where)) {
    for (const value of values) parts.append(`in.${name}`, writeValue(value));
    if (min !== undefined) parts.append(`min.${name}`, writeValue(min));
    if (max !== undefined) parts.append(`max.${name}`, writeValue(max));
  }
  if (doc !== null) parts.append("doc", writeValue(doc));
  return parts.toString();
}

/** The state that is written so; what makes no sense is left at its start. */
export function read(written) {
  const parts = new URLSearchParams(written.replace(/^#/, ""));
  const whole = (name, least) => (/^\d{1,9}$/.test(parts.get(name)) ? Math.max(least, Number(parts.get(name))) : null);
  const where = {};
  for (const [key, value] of parts) {
    const [, part, name] = /^(in|min|max)\.(.+)$/s.exec(key) ?? [];
    if (!part) continue;
    where[name] ??= {};
    if (part === "in") where[name].in = [...new Set([...(where[name].in ?? []), readValue(value)])];
    else where[name][part] = readValue(value);
  }
  return {
    q: parts.get("q") ?? "",
    like: parts.getAll("like").map(readValue),
    k: whole("k", 1) ?? START.k,
    radius: whole("radius", 0),
    rank: parts.get("rank"),
    copies: parts.get("copies") !== "all",
    where,
    doc: parts.has("doc") ? readValue(parts.get("doc")) : null,
  };
}

const address = () => { const written = write(state); return written ? `#${written}` : location.pathname; };

function announce(before) {
  for (const listener of listeners) listener(state, before);
}

/** Change some of the state. `how`: "push" makes an entry in the history, "typing" one for all that is typed in a row,
 * "replace" none. */
export function change(some, how = "push") {
  const before = state;
  state = { ...state, ...some };
  if (write(state) === write(before) && state.q === before.q) return;
  const push = how === "push" || (how === "typing" && !typing);
  typing = how === "typing";
  const kept = { state, opened: push && before.doc === null && state.doc !== null };
  if (push) history.pushState(kept, "", address());
  else history.replaceState({ ...kept, opened: history.state?.opened ?? false }, "", address());
  announce(before);
}

/** Set the condition of a field, or remove it. */
export function filter(name, condition, how = "push") {
  const where = { ...state.where };
  delete where[name];
  if (condition && (condition.in?.length || condition.min !== undefined || condition.max !== undefined)) where[name] = condition;
  change({ where }, how);
}

/** Search for a value of a field too, or no longer. */
export function toggle(name, value) {
  const chosen = state.where[name]?.in ?? [];
  const values = chosen.includes(value) ? chosen.filter((other) => other !== value) : [...chosen, value];
  filter(name, { ...state.where[name], in: values });
}

/** Close the document: back where it was opened from, if that is the entry before. */
export function closeDocument() {
  if (state.doc === null) return;
  if (history.state?.opened) {
    const before = state;
    state = { ...state, doc: null }; // shown at once; the history follows
    history.back();
    announce(before);
  } else change({ doc: null }, "replace");
}

/** What is typed next is a new entry. */
export function settle() {
  typing = false;
}

export function start() {
  addEventListener("popstate", (event) => {
    const before = state;
    state = event.state?.state ?? read(location.hash);
    typing = false;
    announce(before);
  });
  const before = state;
  state = history.state?.state ?? read(location.hash);
  announce(before);
}
