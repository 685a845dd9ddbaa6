// The map of the collection: its state, what is shown on it, and what a pointer finds there.

import { Refused, server, Unreachable } from "./calls.js";
import { channels, mixed, placeOf, theme } from "./colours.js";
import { $, counted, el, number, put } from "./dom.js";
import { legend } from "./legend.js";
import { drawMarks } from "./map-marks.js";
import { Grid, homes } from "./map-grid.js";
import { Painter } from "./map-points.js";
import { View } from "./map-view.js";

const POLL = 2000; // milliseconds between looks at a map that is being drawn
const PIXELS = 2e6; // that the points may take
const NAMES = 40; // labels that may be written on the map

export class DocumentMap {
  /** `acts`: open(id), point(id) when the pointer is on a document, filter(field, label), lost(), drawn(). */
  constructor(acts) {
    this.acts = acts;
    this.data = null;
    this.where = {};
    this.hits = [];
    this.query = null;
    this.pointed = null; // the place of what is pointed at, on the map or in the list
    this.frame = null;
    this.timer = null;
    this.area = $("map");
    this.painter = new Painter($("map-points"));
    this.marks = $("map-marks");
    this.view = new View(this.marks, {
      moved: () => { this.stale = true; this.later(); },
      hover: (x, y) => this.hover(x, y),
      click: (x, y, touched) => this.click(x, y, touched),
      enter: () => this.click(this.view.width / 2, this.view.height / 2, true),
      keyed: () => { this.keyed = true; this.later(); },
    });
    this.marks.addEventListener("blur", () => { this.keyed = false; this.later(); });
    $("zoom-in").addEventListener("click", () => this.view.go(this.view.closer(1.8)));
    $("zoom-out").addEventListener("click", () => this.view.go(this.view.closer(1 / 1.8)));
    $("zoom-whole").addEventListener("click", () => this.view.go(this.view.whole));
    $("zoom-hits").addEventListener("click", () => this.view.go(this.view.around(this.places())));
    new ResizeObserver(() => this.resize()).observe(this.area);
  }

  /** Ask the server for the map, until it is there. */
  async load() {
    clearTimeout(this.timer);
    let found;
    try {
      found = await server.map();
    } catch (error) {
      if (error instanceof Unreachable) this.acts.lost();
      else if (error instanceof Refused && error.status === 503) this.timer = setTimeout(() => this.load(), POLL);
      else this.none(error.message);
      return;
    }
    if (found.state === "ready") this.take(found);
    else if (found.state === "drawing") {
      this.drawing(found.share);
      this.timer = setTimeout(() => this.load(), POLL);
    } else this.none(found.why);
  }

  drawing(share) {
    this.say(
      el("p", {}, "The map of the collection is being drawn"),
      share === null ? null : el("progress", { max: 1, value: share, "aria-label": "Share of the map that is drawn" }),
      share === null ? null : el("p", { class: "quiet" }, `${Math.round(share * 100)} %`));
  }

  none(why) {
    this.data = null;
    document.body.classList.add("no-map");
    $("map-button").hidden = true;
    put($("map-note"), "There is no map", why ? `: ${why}` : "", ".");
  }

  say(...children) {
    document.body.classList.remove("no-map");
    $("map-button").hidden = false;
    this.area.classList.remove("ready");
    put($("map-state"), children);
    $("map-state").hidden = false;
    $("map-tools").hidden = true;
  }

  take(found) {
    document.body.classList.remove("no-map");
    $("map-button").hidden = false;
    this.area.classList.add("ready");
    $("map-state").hidden = true;
    $("map-tools").hidden = false;
    const x = Float32Array.from(found.x), y = Float32Array.from(found.y);
    const fresh = this.data?.points !== found.points; // after a lost connection the same map stays where it is
    this.data = { ...found, x, y, label: found.label.length ? found.label : found.ids.map(() => -1) };
    this.points = new Map(found.ids.map((id, point) => [id, point]));
    this.grid = new Grid(x, y);
    this.homes = homes(x, y, this.data.label, found.labels, NAMES);
    const extreme = (values, which) => values.reduce((one, other) => which(one, other), values[0] ?? 0);
    const bounds = {
      left: extreme(x, Math.min), right: extreme(x, Math.max), top: extreme(y, Math.min), bottom: extreme(y, Math.max),
    };
    if (fresh) this.view.bound(bounds);
    put($("map-note"), found.points < found.documents ? `A sample of ${number(found.points)} of ${counted(found.documents, "document")}.` : "",
      " Documents that are alike lie together.");
    this.marks.setAttribute("aria-label",
      `Map of ${counted(found.points, "document")}. Arrow keys move it, plus and minus zoom, Enter opens the document in the middle.`);
    this.light(this.hits, this.query);
    this.regroup();
    this.legend();
    this.resize();
    this.acts.drawn();
  }

  // Points of a colour together, grey ones lowest; with labels chosen, the others are grey too.
  regroup() {
    if (!this.data) return;
    const chosen = new Set(this.labels);
    const colours = this.data.labels.map((label) => (chosen.size && !chosen.has(label) ? -1 : placeOf(label)));
    const bright = this.data.labels.map((label) => chosen.has(label));
    const groups = new Map();
    this.data.label.forEach((which, point) => {
      const colour = which < 0 ? -1 : colours[which];
      const key = colour < 0 && which >= 0 && bright[which] ? "chosen" : colour;
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(point);
    });
    const order = [...groups.keys()].sort((one, other) => (one === -1 ? -1 : other === -1 ? 1 : 0));
    this.groups = order.map((key) => ({ key, points: Uint32Array.from(groups.get(key)) }));
    this.stale = true;
    this.later();
  }

  legend() {
    if (this.data) legend($("legend"), this.data, this.labels, this.acts.filter);
  }

  /** The labels that are searched in, of the field that gives the colours. */
  get labels() {
    return this.where[this.data?.field]?.in ?? [];
  }

  filter(where) {
    this.where = where;
    this.regroup();
    this.legend();
  }

  /** Light up hits, and mark the query's place. */
  light(hits, query) {
    const lit = this.hits.length > 0;
    this.hits = hits.map((hit) => ({ ...hit, position: this.placeOf(hit) }));
    this.query = query;
    this.pointed = null;
    $("zoom-hits").hidden = !this.places().length;
    if (lit !== hits.length > 0) this.stale = true;
    this.later();
  }

  /** Where a hit lies: at its own point, if the map has one. */
  placeOf({ id, position }) {
    const point = this.points?.get(id);
    return point === undefined ? position : [this.data.x[point], this.data.y[point]];
  }

  places() {
    return [...this.hits.map((hit) => hit.position), this.query].filter(Boolean);
  }

  /** Point at a document from the list. */
  point(id) {
    const hit = this.hits.find((other) => other.id === id);
    this.pointed = hit?.position ?? null;
    this.later();
  }

  recolour() {
    this.regroup();
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.area;
    if (!width || !height) return;
    this.ratio = Math.max(devicePixelRatio || 1, 1);
    // Points are drawn for every frame of a move: on a large and fine screen fewer pixels keep it smooth.
    this.fineness = Math.min(this.ratio, Math.max(1, Math.sqrt(PIXELS / (width * height))));
    for (const [canvas, ratio] of [[this.painter.canvas, this.fineness], [this.marks, this.ratio]]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    this.view.resize(width, height);
    this.stale = true;
    this.later();
  }

  later() {
    this.frame ??= requestAnimationFrame(() => { this.frame = null; this.draw(); });
  }

  draw() {
    if (!this.data || !this.view.width) return;
    const colours = theme(), { view, fineness } = this;
    const start = performance.now();
    if (this.stale) {
      this.stale = false;
      const [left, top] = view.toScreen(0, 0);
      const small = Math.min(Math.max(Math.min(view.width, view.height) / 560, 0.7), 1);
      const size = Math.min(Math.max(130 / Math.sqrt(this.data.points), 1.4), 4) * small * Math.min(view.zoom ** 0.35, 2.2) * fineness;
      const page = channels(colours.page), strength = this.hits.length ? 0.55 : 0.9; // hits are to stand out
      const groups = this.groups.map(({ key, points }) => {
        const colour = channels(key === -1 ? colours.other : key === "chosen" ? colours.accent : colours.labels[key]);
        return { points, colour: mixed(colour, page, key === -1 ? strength * 0.85 : strength), radius: key === -1 ? size * 0.9 : size };
      });
      const place = { scale: view.scale * fineness, left: left * fineness, top: top * fineness };
      this.painter.paint(this.data.x, this.data.y, groups, place, page);
    }
    const lit = this.hits.filter((hit) => hit.position).map((hit) => {
      const colour = placeOf([hit.fields[this.data.field]].flat()[0]);
      return { position: hit.position, colour: colour < 0 ? colours.accent : colours.labels[colour] };
    });
    const scene = {
      homes: this.homes, hits: lit, query: this.query, pointed: this.pointed, keyed: this.keyed, x: this.data.x, y: this.data.y,
      tools: [view.width - 54, 0, view.width, 170],
    };
    drawMarks(this.marks.getContext("2d"), view, colours, scene, this.ratio);
    // For those who look from outside: milliseconds of the frame, and where the map is.
    this.area.dataset.frame = (performance.now() - start).toFixed(1);
    this.area.dataset.view = `${view.x} ${view.y} ${view.scale}`;
  }

  /** The point at a place of the screen: a hit, if one is near, else the nearest. */
  find(x, y, reach) {
    if (!this.data) return -1;
    const near = this.hits.find((hit) => {
      if (!hit.position || !this.points.has(hit.id)) return false;
      const [hitX, hitY] = this.view.toScreen(...hit.position);
      return Math.hypot(hitX - x, hitY - y) <= Math.min(reach, 8);
    });
    if (near) return this.points.get(near.id);
    return this.grid.nearest(...this.view.toMap(x, y), reach / this.view.scale);
  }

  hover(x, y) {
    const point = x === null ? -1 : this.find(x, y, 10);
    const tip = $("map-tip");
    this.marks.classList.toggle("on-point", point >= 0);
    tip.hidden = point < 0;
    const before = this.pointed;
    this.pointed = point < 0 ? null : [this.data.x[point], this.data.y[point]];
    if (point >= 0) {
      const which = this.data.label[point];
      put(tip, el("b", {}, this.data.titles[point]), which < 0 ? null : el("span", {}, this.data.labels[which]));
      const [atX, atY] = this.view.toScreen(...this.pointed);
      const right = Math.min(Math.max(atX - tip.offsetWidth / 2, 6), this.view.width - tip.offsetWidth - 6);
      tip.style.transform = `translate(${Math.round(right)}px, ${Math.round(atY > 70 ? atY - tip.offsetHeight - 16 : atY + 18)}px)`;
    }
    if (before || this.pointed) this.later();
    this.acts.point(point < 0 ? null : this.data.ids[point]);
  }

  click(x, y, coarsely) {
    const point = this.find(x, y, coarsely ? 22 : 10);
    if (point >= 0) this.acts.open(this.data.ids[point]);
  }
}
