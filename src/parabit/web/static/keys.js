// The keyboard.

import { showKeys } from "./dialogs.js";
import { $ } from "./dom.js";

const writes = (element) => element?.matches?.("textarea, select, input:not([type=checkbox], [type=range])");

/** `page`: {hits, like(id), open(id), clear(), commit()}. */
export function setUpKeyboard(page) {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey || event.isComposing) return;
    if (document.querySelector("dialog[open]")) return; // it has keys of its own
    if (everywhere(event, page) || inBox(event, page) || inHits(event, page)) event.preventDefault();
  });
}

function everywhere(event, page) {
  if (writes(document.activeElement)) return false;
  if (event.key === "/") {
    $("query").focus();
    $("query").select();
  } else if (event.key === "?") showKeys();
  else if (event.key === "Escape" && page.hits.place >= 0) $("query").focus();
  else if (event.key === "ArrowDown" && document.activeElement === document.body) page.hits.focus(0);
  else return false;
  return true;
}

function inBox(event, page) {
  const box = $("query");
  if (document.activeElement !== box) return false;
  // In a text of several lines the arrows move the cursor first.
  const rest = box.value.slice(box.selectionEnd);
  if (event.key === "ArrowDown" && !rest.includes("\n") && page.hits.articles.length) page.hits.focus(0);
  else if (event.key === "Enter" && !event.shiftKey) page.commit();
  else if (event.key === "Escape") page.clear();
  else return false;
  return true;
}

function inHits(event, page) {
  const { hits } = page, place = hits.place;
  if (place < 0) return false;
  const onHit = document.activeElement.classList.contains("hit");
  if (event.key === "ArrowDown") hits.focus(place + 1);
  else if (event.key === "ArrowUp" && place === 0) $("query").focus();
  else if (event.key === "ArrowUp") hits.focus(place - 1);
  else if (event.key === "Home") hits.focus(0);
  else if (event.key === "End") hits.focus(Infinity);
  else if (event.key === "Enter" && onHit) page.open(hits.focused.id);
  else if (event.key === "m") page.like(hits.focused.id);
  else if (event.key === "w") hits.explain();
  else return false;
  return true;
}
