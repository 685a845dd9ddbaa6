// What is asked and shown, kept in the address: links, reloads and the back button give it again.

const LONGEST = 4000; // characters of a query that go into the address; a longer one lives in the history alone

export const START = { q: "", like: [], k: 10, radius: null, rank: null, labels: [], doc: null };

let state = START;
let typing = false; // whether the last entry of the history was made by typing, and may be written over
const listeners = [];

export const current = () => state;
export const onChange = (listener) => listeners.push(listener);

/** The document that others are like, if any: the last of the trail. */
export const likeness = ({ like }) => (like.length ? like[like.length - 1] : null);

/** Whether there is anything to look for. */
export const asks = (of) => of.like.length > 0 || of.q.trim() !== "";

// Ids are strings or numbers. In the address a number is written plainly, and a string that looks like one in quotes.
const writeId = (id) => (typeof id === "string" && /^(-?\d+$|")/.test(id) ? JSON.stringify(id) : String(id));

function readId(written) {
  if (/^-?\d+$/.test(written)) return Number.isSafeInteger(Number(written)) ? Number(written) : written;
  if (!written.startsWith('"')) return written;
  try { return String(JSON.parse(written)); } catch { return written; }
}

/** A state as the part of an address after #. */
export function write({ q, like, k, radius, rank, labels, doc }) {
  const parts = new URLSearchParams();
  if (q && q.length <= LONGEST) parts.append("q", q);
  for (const id of like) parts.append("like", writeId(id));
  if (k !== START.k) parts.append("k", k);
  if (radius !== null) parts.append("radius", radius);
  if (rank !== null) parts.append("rank", rank);
  for (const label of labels) parts.append("label", label);
  if (doc !== null) parts.append("doc", writeId(doc));
  return parts.toString();
}

/** The state that is written so; what makes no sense is left at its start. */
export function read(written) {
  const parts = new URLSearchParams(written.replace(/^#/, ""));
  const whole = (name, least) => (/^\d{1,9}$/.test(parts.get(name)) ? Math.max(least, Number(parts.get(name))) : null);
  return {
    q: parts.get("q") ?? "",
    like: parts.getAll("like").map(readId),
    k: whole("k", 1) ?? START.k,
    radius: whole("radius", 0),
    rank: parts.get("rank"),
    labels: [...new Set(parts.getAll("label"))],
    doc: parts.has("doc") ? readId(parts.get("doc")) : null,
  };
}

const address = () => { const written = write(state); return written ? `#${written}` : location.pathname; };

function tell(before) {
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
  tell(before);
}

/** Close the document: back where it was opened from, if that is the entry before. */
export function closeDocument() {
  if (state.doc === null) return;
  if (history.state?.opened) {
    const before = state;
    state = { ...state, doc: null }; // shown at once; the history follows
    history.back();
    tell(before);
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
    tell(before);
  });
  const before = state;
  state = history.state?.state ?? read(location.hash);
  tell(before);
}
