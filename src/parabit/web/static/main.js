// The search page, put together.

import * as box from "./box.js";
import { onToken, Refused, server, Unreachable } from "./calls.js";
import { colourLabels, shareColours } from "./colours.js";
import { Connection } from "./connection.js";
import { askForToken, setUpKeys, showKeys } from "./dialogs.js";
import { DocumentPanel } from "./document.js";
import { $, counted, put } from "./dom.js";
import * as fields from "./fields.js";
import { countOf, Hits, hitsText } from "./hits.js";
import { icon, placeIcons } from "./icons.js";
import { setUpKeyboard } from "./keys.js";
import { DocumentMap } from "./map.js";
import * as messages from "./messages.js";
import * as options from "./options.js";
import { question, Search } from "./search.js";
import * as state from "./state.js";
import { setUpTabs, showTab } from "./tabs.js";
import { showTrail } from "./trail.js";

const LOOK_AGAIN = 2000; // milliseconds between looks at an index that is empty

let about = null;
let start = null; // examples and recent documents, once they are there
let answer = null; // of the last search
let whys = null; // a promise of what the scores of the last answer are made of, by id

const acts = {
  ask: (query) => { state.change({ q: query, like: [] }); $("query").focus(); },
  open: (id, how = "push") => state.change({ doc: id }, how),
  like: (id) => {
    const { like } = state.current();
    state.change({ like: like.at(-1) === id ? like : [...like, id], doc: null });
    showTab("hits");
  },
  linkTo: (id) => `#${state.write({ ...state.current(), doc: id })}`,
  point: (id) => map.point(id),
  lost: () => connection.lost(),
  /** What the score of a hit is made of; null where the server does not say. */
  why: async (hit) => {
    whys ??= server.search({ ...question(state.current()), collapse: false, why: true, positions: false })
      .then(({ hits: found }) => new Map(found.map(({ id, why }) => [id, why])))
      .catch(() => new Map());
    return (await whys).get(hit.id) ?? null;
  },
};

const hits = new Hits($("hits"), acts);
const map = new DocumentMap({
  ...acts,
  filter: state.toggle,
  point: (id) => hits.point(id),
  drawn: () => {
    // What was answered before there was a map knows no places on it.
    if (answer?.code && answer.position === null) search.run(state.current(), { again: true });
  },
});
const panel = new DocumentPanel(acts, () => answer?.hits.map((hit) => hit.id) ?? []);
const connection = new Connection(() => begin().then(() => search.run(state.current(), { again: true })));
const search = new Search({
  slow: (yes) => { $("waiting").hidden = !yes; },
  lost: () => connection.lost(),
  nothing: () => { empty(); showNothing(); },
  found: (found, asked) => show(found, asked),
  failed: (error, wait) => {
    empty();
    messages.failed(error, wait, () => search.run(state.current(), { again: true }));
  },
});

function empty() {
  answer = whys = null;
  hits.clear();
  $("more").hidden = true;
  put($("count"), "");
  $("notes").hidden = true;
  map.light([], null);
  panel.answered(null);
}

function showNothing() {
  if (!about) return;
  if (about.documents === 0) messages.emptyIndex(about);
  else messages.welcome(about, start, acts);
}

function show(found, asked) {
  answer = found;
  whys = null;
  if (!about) return; // shown when it is known what the index is
  hits.show(found, about, state.current().where);
  messages.notes(found);
  map.light(found.hits, found.position);
  panel.answered(found.code);
  const more = Math.min(asked.k + 10, about.limits.k);
  $("more").hidden = countOf(found.hits) < asked.k || more <= asked.k;
  put($("more"), `Show ${more - asked.k} more`);
  if (!found.known) {
    put($("count"), "");
    messages.unknown(asked.query ?? "", start, acts);
  } else if (about.documents === 0) messages.emptyIndex(about);
  else if (!found.hits.length) {
    put($("count"), `No hit among ${counted(found.documents, "document")}`);
    messages.noHits(state.current());
  } else {
    put($("count"), `${hitsText(found.hits)} of ${counted(found.documents, "document")}, by ${options.rankText(found.rank)}, in ${took(found.seconds)}`);
    messages.quiet();
  }
}

const took = (seconds) => (seconds < 1 ? `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)} ms` : `${seconds.toFixed(1)} s`);

/** Learn what the index is; what was already asked is shown then. */
async function begin() {
  let known;
  try {
    [about, known] = await Promise.all([server.about(), server.fields()]);
  } catch (error) {
    if (error instanceof Unreachable) connection.lost();
    else {
      const wait = error instanceof Refused && error.status === 503 ? Math.max(error.retryAfter ?? 2, 1) : 0;
      if (wait) setTimeout(beginAgain, wait * 1000);
      messages.failed(error, wait, beginAgain);
    }
    return;
  }
  fields.setFields(known);
  colourLabels(fields.colouring()?.values.map(([value]) => value) ?? []);
  put($("title"), about.title);
  put($("size"), counted(about.documents, "document"));
  box.offer(about, known);
  options.offer(about);
  name();
  if (about.documents === 0) setTimeout(lookAgain, LOOK_AGAIN);
  map.load();
  if (!state.asks(state.current())) showNothing();
  else if (answer) show(answer, JSON.parse(search.asked));
  panel.show(state.current(), about);
  try {
    start = await server.start();
  } catch { return; } // a start without examples
  if (!state.asks(state.current())) showNothing();
}

async function lookAgain() {
  try {
    const found = await server.about();
    if (found.documents > 0) beginAgain();
    else setTimeout(lookAgain, LOOK_AGAIN);
  } catch {
    connection.lost();
  }
}

function beginAgain() {
  begin();
  search.run(state.current(), { again: true });
}

/** The title of the window. */
function name() {
  const { like, q } = state.current();
  const what = like.length ? `like ${like.at(-1)}` : q.trim();
  const title = about?.title ?? "parabit";
  document.title = what ? `${what.slice(0, 80)} – ${title}` : title;
}

state.onChange((now, before) => {
  box.showText(now);
  options.show(now, about);
  fields.show(now);
  showTrail(now);
  if (now.where !== before.where) map.filter(now.where);
  search.run(now);
  if (about) panel.show(now, about);
  name();
});

placeIcons();
onToken(askForToken);
box.setUpBox();
options.setUpOptions();
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
$("map-button").addEventListener("click", () => search.run(state.current())); // places on the map are asked for if it is shown
$("more").addEventListener("click", () => state.change({ k: Math.min(state.current().k + 10, about.limits.k) }));
new ResizeObserver(([{ target }]) => document.documentElement.style.setProperty("--ask", `${target.offsetHeight}px`)).observe($("ask"));
if (matchMedia("(hover: hover)").matches) $("query").focus();
state.start(); // runs the search of the address, while the index is asked what it is
begin();
