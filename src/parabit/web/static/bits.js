// Codes, drawn as little grids of bits: a bit is dark where it is 1, and orange where it differs from the query's.

import { svg } from "./dom.js";

/** The bits of a code in hex, the first bit being the highest of the first byte. */
export function bitsOf(code, count) {
  const bits = new Uint8Array(count);
  for (let bit = 0; bit < count; bit += 1) {
    bits[bit] = (Number.parseInt(code[bit >> 2], 16) >> (3 - (bit & 3))) & 1;
  }
  return bits;
}

/** How many bits two codes differ in. */
export function differing(code, other, count) {
  const ours = bitsOf(code, count), theirs = bitsOf(other, count);
  return ours.reduce((sum, bit, place) => sum + (bit === theirs[place] ? 0 : 1), 0);
}

/** How many bits stand in a row: a grid about twice as wide as high. */
export function columnsFor(count) {
  if (count <= 8) return count;
  let columns = 8;
  while (columns * columns < count * 2) columns += 8;
  return columns;
}

const SIDE = 0.82; // of a cell, the rest is the gap

/** A code as a picture, with `other`, if given, to differ from; `cell` is the size of a bit in pixels.
 *
 * All bits of a kind are one path: a hundred hits of a thousand bits are still only a few hundred elements. */
export function grid(code, count, { other = null, cell = 6, label = null } = {}) {
  const bits = bitsOf(code, count), theirs = other === null ? bits : bitsOf(other, count);
  const columns = columnsFor(count), rows = Math.ceil(count / columns);
  const paths = { zero: "", one: "", "zero differs": "", "one differs": "" };
  bits.forEach((bit, place) => {
    const kind = (bit ? "one" : "zero") + (bit === theirs[place] ? "" : " differs");
    paths[kind] += `M${place % columns} ${Math.floor(place / columns)}h${SIDE}v${SIDE}h-${SIDE}z`;
  });
  const drawn = Object.entries(paths).filter(([, d]) => d).map(([kind, d]) => svg("path", { class: kind, d }));
  const gap = 1 - SIDE;
  return svg("svg", {
    class: "code", viewBox: `0 0 ${columns - gap} ${rows - gap}`, width: columns * cell, height: rows * cell,
    ...(label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" }),
  }, drawn);
}
