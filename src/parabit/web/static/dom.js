// Building elements. Text only ever goes in as text nodes: what a document says is shown, never run.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes, listeners (`onclick`) and children (elements, or anything else as text). */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/** Put children in the place of those that are there. */
export function put(element, ...children) {
  const fresh = document.createDocumentFragment();
  add(fresh, children);
  element.replaceChildren(fresh);
}

export const $ = (id) => document.getElementById(id);

/** A number with thousands separated, as the page is in English. */
export const number = (value) => Number(value).toLocaleString("en");

/** "1 document", "2 documents". */
export const counted = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;

/** Parts of a text, [{text, mark}], as text nodes and <mark>s. */
export function marked(parts) {
  return parts.map((part) => (part.mark ? el("mark", {}, part.text) : part.text));
}

/** A function that runs some milliseconds after its last call; `now` runs it at once if it waits, `drop` never. */
export function debounced(run, wait) {
  let timer = null;
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(() => { timer = null; run(); }, wait);
  };
  later.drop = () => { clearTimeout(timer); timer = null; };
  later.now = () => { if (timer !== null) { later.drop(); run(); } };
  return later;
}

export const calmly = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Copy a text, and say so on the button for a moment; without leave to copy it is selected at least. */
export function copyText(button, text, element) {
  const say = (word) => {
    const before = button.getAttribute("aria-label");
    button.dataset.copied = word;
    button.setAttribute("aria-label", word);
    setTimeout(() => { delete button.dataset.copied; button.setAttribute("aria-label", before); }, 1500);
  };
  const select = () => { getSelection().selectAllChildren(element); say("Selected"); };
  if (navigator.clipboard) navigator.clipboard.writeText(text).then(() => say("Copied"), select);
  else select();
}
