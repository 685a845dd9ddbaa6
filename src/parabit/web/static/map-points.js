// Drawing the points of the map, 20,000 of them within a few milliseconds.
//
// A canvas takes a call for every circle, which is slow; here the discs are put into the pixels of an image by hand, a
// colour at a time, and the image is handed over whole.

const DISCS = new Map();

/** How much of each pixel a disc covers, 0 to 256, with an edge that is smooth: {side, cover}. */
function disc(radius) {
  const key = Math.round(radius * 8);
  if (!DISCS.has(key)) {
    const half = Math.ceil(radius), side = 2 * half + 1;
    const cover = new Uint16Array(side * side);
    for (let y = -half; y <= half; y += 1) {
      for (let x = -half; x <= half; x += 1) {
        const inside = Math.min(Math.max(radius + 0.5 - Math.hypot(x, y), 0), 1);
        cover[(y + half) * side + x + half] = Math.round(inside * 256);
      }
    }
    DISCS.set(key, { half, side, cover });
  }
  return DISCS.get(key);
}

export class Painter {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.image = null;
  }

  /** Draw groups of points, [{points, colour: [r, g, b], strength: 0..1, radius}], first group lowest.
   *
   * `x` and `y` are in the map's units, `view` says where these are: {scale, left, top} in pixels of the canvas. */
  paint(x, y, groups, view, background) {
    const { width, height } = this.canvas;
    if (!width || !height) return;
    if (this.image?.width !== width || this.image?.height !== height) {
      this.image = this.context.createImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer); // 0xAABBGGRR: all machines that browsers run on are little-endian
    }
    const [red, green, blue] = background;
    this.pixels.fill((0xff000000 | (blue << 16) | (green << 8) | red) >>> 0);
    for (const group of groups) this.group(x, y, group, view, width, height);
    this.context.putImageData(this.image, 0, 0);
  }

  group(x, y, { points, colour, strength, radius }, { scale, left, top }, width, height) {
    const { half, side, cover } = disc(radius);
    const { pixels } = this;
    const [red, green, blue] = colour;
    for (let at = 0; at < points.length; at += 1) {
      const point = points[at];
      const column = Math.round(x[point] * scale + left) - half;
      const row = Math.round(y[point] * scale + top) - half;
      if (column < 0 || row < 0 || column + side > width || row + side > height) continue;
      let from = 0;
      for (let line = 0; line < side; line += 1) {
        let pixel = (row + line) * width + column;
        for (let step = 0; step < side; step += 1, from += 1, pixel += 1) {
          if (cover[from] === 0) continue;
          const over = (cover[from] * strength) | 0, under = 256 - over;
          const old = pixels[pixel];
          pixels[pixel] =
            (0xff000000 |
              ((((old >>> 16) & 255) * under + blue * over) >> 8) << 16 |
              ((((old >>> 8) & 255) * under + green * over) >> 8) << 8 |
              (((old & 255) * under + red * over) >> 8)) >>> 0;
        }
      }
    }
  }
}
