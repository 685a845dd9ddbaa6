// The points of the map in squares, to find the one below the pointer without looking at all.

const SQUARES = 128; // on a side
export const SIDE = 65536; // of the map, in its own units
const SQUARE = SIDE / SQUARES;

const square = (value) => Math.min(SQUARES - 1, Math.max(0, Math.floor(value / SQUARE)));

export class Grid {
  constructor(x, y) {
    Object.assign(this, { x, y });
    const counts = new Uint32Array(SQUARES * SQUARES + 1);
    const squares = Uint32Array.from(x, (_, point) => square(y[point]) * SQUARES + square(x[point]));
    for (const at of squares) counts[at + 1] += 1;
    for (let at = 1; at < counts.length; at += 1) counts[at] += counts[at - 1];
    this.starts = counts.slice();
    this.points = new Uint32Array(x.length); // those of a square stand together
    squares.forEach((at, point) => { this.points[counts[at]++] = point; });
  }

  /** The point nearest to a place and no farther than `most`, or -1. */
  nearest(x, y, most) {
    let best = -1, least = most * most;
    for (let row = square(y - most); row <= square(y + most); row += 1) {
      const from = this.starts[row * SQUARES + square(x - most)];
      const to = this.starts[row * SQUARES + square(x + most) + 1];
      for (let at = from; at < to; at += 1) {
        const point = this.points[at];
        const distance = (this.x[point] - x) ** 2 + (this.y[point] - y) ** 2;
        if (distance <= least) [best, least] = [point, distance];
      }
    }
    return best;
  }
}

const COARSE = 32; // squares on a side, where the points of a label are counted

/** Where each label is at home: the middle of its points in and around the square that has most of them.
 *
 * [{label, x, y, share}], most points first; `share` is the part of its points there. */
export function homes(x, y, label, labels, most) {
  const sums = new Map();
  const at = (value) => Math.min(COARSE - 1, Math.floor((value * COARSE) / SIDE));
  label.forEach((which, point) => {
    if (which < 0) return;
    if (!sums.has(which)) sums.set(which, { count: 0, squares: new Uint32Array(COARSE * COARSE) });
    const sum = sums.get(which);
    sum.count += 1;
    sum.squares[at(y[point]) * COARSE + at(x[point])] += 1;
  });
  const chosen = [...sums].sort(([, one], [, other]) => other.count - one.count).slice(0, most);
  return chosen.map(([which, sum]) => {
    const peak = peakOf(sum.squares);
    let count = 0, sumX = 0, sumY = 0;
    label.forEach((other, point) => {
      if (other !== which || Math.abs(at(x[point]) - peak.x) > 1 || Math.abs(at(y[point]) - peak.y) > 1) return;
      count += 1;
      sumX += x[point];
      sumY += y[point];
    });
    return { label: labels[which], x: sumX / count, y: sumY / count, share: count / sum.count };
  });
}

function peakOf(squares) {
  let best = { x: 0, y: 0, count: -1 };
  for (let y = 0; y < COARSE; y += 1) {
    for (let x = 0; x < COARSE; x += 1) {
      let count = squares[y * COARSE + x] * 2; // the middle counts most, so that an edge is not taken
      for (const [dx, dy] of [[-1, 0], [1, 0], [0, -1], [0, 1]]) {
        if (x + dx >= 0 && x + dx < COARSE && y + dy >= 0 && y + dy < COARSE) count += squares[(y + dy) * COARSE + x + dx];
      }
      if (count > best.count) best = { x, y, count };
    }
  }
  return best;
}
