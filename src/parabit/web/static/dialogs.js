// The small dialogs: keys, and the token. Shared by the search page and the page of the API.

import { keepToken } from "./calls.js";
import { $, el, put } from "./dom.js";
import { icon } from "./icons.js";

const KEYS = [
  ["/", "go to the search box"],
  ["↓ ↑", "through the hits"],
  ["Enter", "open the document"],
  ["m", "more like this"],
  ["w", "why it was found"],
  ["← →", "in a document: the hit before, the next"],
  ["Esc", "close, or clear the search"],
  ["+ − 0", "on the map: closer, farther, all of it; arrows move"],
  ["?", "these keys"],
];

/** A click beside a dialog closes it. */
export function closeOutside(dialog, close) {
  dialog.addEventListener("pointerdown", (event) => {
    const { left, right, top, bottom } = dialog.getBoundingClientRect();
    const inside = event.clientX >= left && event.clientX <= right && event.clientY >= top && event.clientY <= bottom;
    if (event.target === dialog && !inside) close();
  });
}

export const closeButton = (onclick) =>
  el("button", { class: "tool", type: "button", "aria-label": "Close", title: "Close (Esc)", onclick }, icon("close"));

export function setUpKeys() {
  const dialog = $("keys");
  const rows = KEYS.map(([keys, what]) => [el("dt", {}, keys.split(" ").map((key) => el("kbd", {}, key))), el("dd", {}, what)]);
  put(dialog,
    el("div", { class: "dialog-head" }, el("h2", { id: "keys-title" }, "Keys"), closeButton(() => dialog.close())),
    el("dl", { class: "keys" }, rows));
  closeOutside(dialog, () => dialog.close());
}

export function showKeys() {
  if (!$("keys").open) $("keys").showModal();
}

/** Ask for the token of the server: a promise of it, or of null where the dialog is closed. */
export function askForToken(wrong) {
  const dialog = $("token");
  const input = el("input", { type: "password", id: "token-input", autocomplete: "off", "aria-describedby": "token-text" });
  return new Promise((answer) => {
    let given = null;
    const form = el("form", {
      onsubmit: (event) => {
        event.preventDefault();
        given = input.value.trim() || null;
        if (given) dialog.close();
      },
    },
      el("div", { class: "dialog-head" }, el("h2", { id: "token-title" }, "This server asks for a token"), closeButton(() => dialog.close())),
      el("p", { id: "token-text", class: wrong ? "wrong" : "quiet" },
        wrong ? `That was not it: ${wrong}.` : "It is what the server was started with. This tab remembers it until it is closed."),
      el("label", { for: "token-input" }, "Token"),
      el("div", { class: "token-row" }, input, el("button", { class: "button", type: "submit" }, "Go on")));
    put(dialog, form);
    dialog.addEventListener("close", () => {
      if (given) keepToken(given);
      answer(given);
    }, { once: true });
    dialog.showModal();
    input.focus();
  });
}
