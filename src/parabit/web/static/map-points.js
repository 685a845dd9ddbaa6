// Drawing the points of the map, 20,000 of them within a few milliseconds.
//
// A canvas takes a call for every circle, which is slow; here the discs are put into the pixels of an image by hand, a
// colour at a time, and the image is handed over whole.

/** A disc as steps from its middle, in an image that is `width` pixels wide: those wholly inside, and those at the edge
 * with how much of them is covered, 0 to 256. */
function disc(radius, width) {
  const half = Math.ceil(radius), inside = [], edge = [], cover = [];
  for (let y = -half; y <= half; y += 1) {
    for (let x = -half; x <= half; x += 1) {
      const covered = Math.round(256 * Math.min(Math.max(radius + 0.5 - Math.hypot(x, y), 0), 1));
      if (covered === 256) inside.push(y * width + x);
      else if (covered > 0) {
        edge.push(y * width + x);
        cover.push(covered);
      }
    }
  }
  return { half, inside: Int32Array.from(inside), edge: Int32Array.from(edge), cover: Int32Array.from(cover) };
}

// A pixel is 0xAABBGGRR, as all machines that browsers run on are little-endian.
const ODD = 0xff00ff, EVEN = 0x00ff00, OPAQUE = 0xff000000;
const pixelOf = ([red, green, blue]) => (OPAQUE | (blue << 16) | (green << 8) | red) >>> 0;

export class Painter {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.image = null;
  }

  /** Draw groups of points, [{points, colour: [r, g, b], radius}], first group lowest.
   *
   * `x` and `y` are in the map's units, `view` says where these are: {scale, left, top} in pixels of the canvas. */
  paint(x, y, groups, view, background) {
    const { width, height } = this.canvas;
    if (!width || !height) return;
    if (this.image?.width !== width || this.image?.height !== height) {
      this.image = this.context.createImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    this.pixels.fill(pixelOf(background));
    for (const { points, colour, radius } of groups) {
      stamp(this.pixels, width, height, x, y, points, pixelOf(colour), disc(radius, width), view);
    }
    this.context.putImageData(this.image, 0, 0);
  }
}

function stamp(pixels, width, height, x, y, points, colour, { half, inside, edge, cover }, { scale, left, top }) {
  // Two channels at a time: what is below a channel's byte leaves room for its product.
  const odd = cover.map((over) => Math.imul(colour & ODD, over)), even = cover.map((over) => Math.imul(colour & EVEN, over));
  const right = width - half, bottom = height - half;
  for (let at = 0; at < points.length; at += 1) {
    const point = points[at];
    const column = (x[point] * scale + left + 0.5) | 0, row = (y[point] * scale + top + 0.5) | 0;
    if (column < half || row < half || column >= right || row >= bottom) continue;
    const middle = row * width + column;
    for (let step = 0; step < inside.length; step += 1) pixels[middle + inside[step]] = colour;
    for (let step = 0; step < edge.length; step += 1) {
      const pixel = middle + edge[step], old = pixels[pixel], under = 256 - cover[step];
      pixels[pixel] = OPAQUE
        | (((Math.imul(old & ODD, under) + odd[step]) >>> 8) & ODD)
        | (((Math.imul(old & EVEN, under) + even[step]) >>> 8) & EVEN);
    }
  }
}
