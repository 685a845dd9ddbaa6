// Which part of the map is seen, and moving it: wheel, drag, pinch, buttons and keys.

import { calmly } from "./dom.js";
import { SIDE } from "./map-grid.js";

const CLOSEST = 80; // times as close as the whole map
const STILL = 5; // pixels that a click may move
const SMOOTH = 220; // milliseconds of a move by button or key

export class View {
  /** `acts`: moved(), hover(x, y) or hover(null), click(x, y, touched), enter(); places in pixels of the page. */
  constructor(element, acts) {
    Object.assign(this, { element, acts, width: 0, height: 0, x: SIDE / 2, y: SIDE / 2, zoom: 1 });
    this.bounds = { left: 0, top: 0, right: SIDE, bottom: SIDE };
    this.pointers = new Map();
    this.moving = null;
    element.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    for (const name of ["down", "move", "up", "cancel"]) element.addEventListener(`pointer${name}`, (event) => this[name](event));
    element.addEventListener("pointerleave", () => { if (!this.pointers.size) acts.hover(null); });
    element.addEventListener("keydown", (event) => this.key(event));
  }

  /** Pixels per unit of the map. */
  get scale() {
    const { left, top, right, bottom } = this.bounds;
    const room = Math.max(24, Math.min(this.width, this.height) * 0.05);
    const fit = Math.min((this.width - 2 * room) / Math.max(right - left, 1), (this.height - 2 * room) / Math.max(bottom - top, 1));
    return Math.max(fit, 1e-6) * this.zoom;
  }

  /** A place of the map in pixels, and back. */
  toScreen(x, y) {
    return [(x - this.x) * this.scale + this.width / 2, (y - this.y) * this.scale + this.height / 2];
  }

  toMap(x, y) {
    return [(x - this.width / 2) / this.scale + this.x, (y - this.height / 2) / this.scale + this.y];
  }

  resize(width, height) {
    Object.assign(this, { width, height });
  }

  /** The rectangle of all points. */
  bound(bounds) {
    this.bounds = bounds;
    Object.assign(this, this.whole);
  }

  get whole() {
    const { left, top, right, bottom } = this.bounds;
    return { x: (left + right) / 2, y: (top + bottom) / 2, zoom: 1 };
  }

  set({ x, y, zoom }) {
    const { left, top, right, bottom } = this.bounds;
    this.zoom = Math.min(Math.max(zoom, 0.8), CLOSEST);
    this.x = Math.min(Math.max(x, left), right);
    this.y = Math.min(Math.max(y, top), bottom);
    this.acts.moved();
  }

  /** Go somewhere, smoothly if that is welcome. */
  go(target) {
    cancelAnimationFrame(this.moving);
    if (calmly()) {
      this.set(target);
      return;
    }
    const from = { x: this.x, y: this.y, zoom: this.zoom }, start = performance.now();
    const step = (now) => {
      const part = Math.min((now - start) / SMOOTH, 1), eased = 1 - (1 - part) ** 3;
      const between = (one, other) => one + (other - one) * eased;
      this.set({
        x: between(from.x, target.x), y: between(from.y, target.y),
        zoom: Math.exp(between(Math.log(from.zoom), Math.log(target.zoom))),
      });
      if (part < 1) this.moving = requestAnimationFrame(step);
    };
    this.moving = requestAnimationFrame(step);
  }

  /** Where the view is once the map is `factor` times as close and the place below a pixel stays there. */
  closer(factor, x = this.width / 2, y = this.height / 2) {
    const [mapX, mapY] = this.toMap(x, y);
    const zoom = Math.min(Math.max(this.zoom * factor, 0.8), CLOSEST);
    const part = this.zoom / zoom;
    return { x: mapX + (this.x - mapX) * part, y: mapY + (this.y - mapY) * part, zoom };
  }

  /** A view of some places, with room around them. */
  around(places) {
    const xs = places.map(([x]) => x), ys = places.map(([, y]) => y);
    const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const unit = this.scale / this.zoom;
    const zoom = 0.7 * Math.min(this.width / (Math.max(right - left, SIDE / 24) * unit), this.height / (Math.max(bottom - top, SIDE / 24) * unit));
    return { x: (left + right) / 2, y: (top + bottom) / 2, zoom: Math.max(zoom, 1) };
  }

  pan(dx, dy, smoothly = false) {
    const target = { x: this.x - dx / this.scale, y: this.y - dy / this.scale, zoom: this.zoom };
    if (smoothly) this.go(target);
    else this.set(target);
  }

  wheel(event) {
    event.preventDefault();
    cancelAnimationFrame(this.moving);
    const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 200 : 1;
    const turn = Math.min(Math.max(event.deltaY * unit, -200), 200);
    this.set(this.closer(Math.exp(-turn * (event.ctrlKey ? 0.01 : 0.0022)), event.offsetX, event.offsetY));
    this.acts.hover(event.offsetX, event.offsetY);
  }

  down(event) {
    if (event.button > 0) return;
    cancelAnimationFrame(this.moving);
    this.element.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    this.travelled = this.pointers.size === 1 ? 0 : Infinity; // two fingers never click
  }

  move(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      this.acts.hover(event.offsetX, event.offsetY);
      return;
    }
    const now = { x: event.offsetX, y: event.offsetY };
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
    this.travelled += Math.hypot(now.x - before.x, now.y - before.y);
    this.pointers.set(event.pointerId, now);
    if (others.length === 1) {
      const [other] = others;
      const apart = (place) => Math.hypot(place.x - other.x, place.y - other.y) || 1;
      this.set(this.closer(apart(now) / apart(before), (before.x + other.x) / 2, (before.y + other.y) / 2));
      this.pan((now.x - before.x) / 2, (now.y - before.y) / 2);
    } else if (this.travelled > STILL) {
      this.element.classList.add("dragged");
      this.acts.hover(null);
      this.pan(now.x - before.x, now.y - before.y);
    }
  }

  up(event) {
    if (!this.pointers.delete(event.pointerId)) return;
    this.element.classList.remove("dragged");
    if (this.travelled <= STILL && !this.pointers.size) this.acts.click(event.offsetX, event.offsetY, event.pointerType === "touch");
  }

  cancel(event) {
    this.pointers.delete(event.pointerId);
    this.element.classList.remove("dragged");
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const step = Math.min(this.width, this.height) / 6;
    const moves = { ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
    if (moves[event.key]) this.pan(...moves[event.key], true);
    else if (event.key === "+" || event.key === "=") this.go(this.closer(1.6));
    else if (event.key === "-" || event.key === "_") this.go(this.closer(1 / 1.6));
    else if (event.key === "0") this.go(this.whole);
    else if (event.key === "Enter") this.acts.enter();
    else return;
    event.preventDefault();
    event.stopPropagation();
    if (event.key !== "Enter") this.acts.keyed();
  }
}
