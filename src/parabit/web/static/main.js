// The search page, put together.

import * as box from "./box.js";
import { onToken, Refused, server, Unreachable } from "./calls.js";
import { colourLabels, shareColours } from "./colours.js";
import { Connection } from "./connection.js";
import { askForToken, setUpKeys, showKeys } from "./dialogs.js";
import { DocumentPanel } from "./document.js";
import { $, counted, put } from "./dom.js";
import * as filters from "./filters.js";
import { Hits } from "./hits.js";
import { icon, placeIcons } from "./icons.js";
import { setUpKeyboard } from "./keys.js";
import * as labels from "./labels.js";
import { DocumentMap } from "./map.js";
import * as messages from "./messages.js";
import { Search } from "./search.js";
import * as state from "./state.js";
import { setUpTabs, showTab } from "./tabs.js";
import { showTrail } from "./trail.js";

const LOOK_AGAIN = 2000; // milliseconds between looks at an index that is empty

let about = null;
let answer = null; // of the last search

const ask = (query) => {
  state.change({ q: query, like: [] });
  $("query").focus();
};
const acts = {
  open: (id, how = "push") => state.change({ doc: id }, how),
  like: (id) => {
    const { like } = state.current();
    state.change({ like: like.at(-1) === id ? like : [...like, id], doc: null });
    showTab("hits");
  },
  filter: labels.toggle,
  linkTo: (id) => `#${state.write({ ...state.current(), doc: id })}`,
  point: (id) => map.point(id),
  lost: () => connection.lost(),
};

const hits = new Hits($("hits"), acts);
const map = new DocumentMap({
  ...acts,
  point: (id) => hits.point(id),
  drawn: () => {
    // What was answered before there was a map knows no places on it.
    if (answer?.known && answer.position === null) search.run(state.current(), { again: true });
  },
});
const panel = new DocumentPanel(acts, () => answer?.hits.map((hit) => hit.id) ?? []);
const connection = new Connection(() => begin().then(() => search.run(state.current(), { again: true })));
const search = new Search({
  slow: (yes) => { $("waiting").hidden = !yes; },
  lost: () => connection.lost(),
  nothing: () => showNothing(),
  found: (found, asked) => show(found, asked),
  failed: (error, wait) => {
    answer = null;
    hits.clear();
    $("more").hidden = true;
    put($("count"), "");
    note([]);
    map.light([], null);
    messages.failed(error, wait, () => search.run(state.current(), { again: true }));
  },
});

function showNothing() {
  answer = null;
  hits.clear();
  $("more").hidden = true;
  put($("count"), "");
  note([]);
  map.light([], null);
  panel.answered(null);
  if (!about) return;
  box.showCode(null, about.bits);
  if (about.documents === 0) messages.emptyIndex(about);
  else messages.welcome(about, ask);
}

function show(found, asked) {
  answer = found;
  if (!about) return; // shown when it is known what the index is
  box.showCode(found.known ? found.code : null, about.bits);
  hits.show(found, about, asked.labels);
  note(found.known ? found.notes : []);
  map.light(found.hits, found.position);
  panel.answered(found.known ? found.code : null);
  const more = Math.min(asked.k + 10, about.limits.k);
  $("more").hidden = found.hits.length < asked.k || more <= asked.k;
  put($("more"), `Show ${more - asked.k} more`);
  if (!found.known) {
    put($("count"), "No word of it is known");
    messages.unknown(asked.query ?? "", about, ask);
  } else if (about.documents === 0) messages.emptyIndex(about);
  else if (!found.hits.length) {
    put($("count"), `No hit among ${counted(found.documents, "document")}`);
    messages.noHits(state.current());
  } else {
    put($("count"), counted(found.hits.length, "hit"), ` of ${counted(found.documents, "document")}, ranked by ${found.rank}, in ${took(found.seconds)}`);
    messages.quiet();
  }
}

/** Say what a search does not promise; most have nothing to say. */
function note(notes) {
  $("notes").hidden = !notes.length;
  put($("notes"), notes.map(messages.sentence).join(" "));
}

const took = (seconds) => (seconds < 1 ? `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)} ms` : `${seconds.toFixed(1)} s`);

/** Learn what the index is; what was already asked is shown then. */
async function begin() {
  try {
    const [told, known] = await Promise.all([server.about(), server.labels()]);
    about = told;
    colourLabels(known.labels.map(({ label }) => label));
    labels.setLabels(known);
  } catch (error) {
    if (error instanceof Unreachable) connection.lost();
    else {
      const wait = error instanceof Refused && error.status === 503 ? Math.max(error.retryAfter ?? 2, 1) : 0;
      if (wait) setTimeout(start, wait * 1000);
      messages.failed(error, wait, start);
    }
    return;
  }
  put($("collection"), about.name, " · ", counted(about.documents, "document"), " · ", counted(about.bits, "bit"));
  if (about.texts) box.enable(about.limits.characters);
  else box.disable("This index was made of codes, without a model that turns texts into codes. Open documents on the map, and ask for more like them.");
  filters.offer(about);
  if (about.documents === 0) setTimeout(lookAgain, LOOK_AGAIN);
  map.load();
  if (!state.asks(state.current())) showNothing();
  else if (answer) show(answer, JSON.parse(search.asked));
  panel.show(state.current(), about);
}

async function lookAgain() {
  try {
    const told = await server.about();
    if (told.documents > 0) start();
    else setTimeout(lookAgain, LOOK_AGAIN);
  } catch {
    connection.lost();
  }
}

function start() {
  begin();
  search.run(state.current(), { again: true });
}

state.onChange((now, before) => {
  box.showText(now);
  filters.show(now, about);
  labels.show(now);
  showTrail(now);
  if (now.labels !== before.labels) map.filter(now.labels);
  search.run(now);
  if (about) panel.show(now, about);
  const what = now.like.length ? `like ${now.like.at(-1)}` : now.q.trim();
  document.title = what ? `${what.slice(0, 80)} – parabit` : about ? `${about.name} – parabit` : "parabit";
});

placeIcons();
onToken(askForToken);
box.setUpBox();
filters.setUpFilters();
labels.setUpLabels();
setUpKeys();
setUpTabs();
setUpKeyboard({ hits, open: acts.open, like: acts.like, clear: box.clear, commit: box.commit });
shareColours(() => {
  const dark = window.parabitTheme.isDark();
  put($("theme-button"), icon(dark ? "sun" : "moon"));
  $("theme-button").setAttribute("aria-label", dark ? "Light page" : "Dark page");
  $("theme-button").title = dark ? "Light page" : "Dark page";
  map.recolour();
});
$("theme-button").addEventListener("click", () => window.parabitTheme.toggle());
$("keys-button").addEventListener("click", showKeys);
$("more").addEventListener("click", () => state.change({ k: Math.min(state.current().k + 10, about.limits.k) }));
new ResizeObserver(([{ target }]) => document.documentElement.style.setProperty("--ask", `${target.offsetHeight}px`)).observe($("ask"));
if (matchMedia("(hover: hover)").matches) $("query").focus();
state.start(); // runs the search of the address, while the index is asked what it is
begin();
