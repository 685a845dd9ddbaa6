// What lies over the points of the map: names of labels, the hits, the query's place, what is pointed at.

/** Draw everything over the points. `scene`: {homes, hits, query, pointed, keyed, x, y, tools}, places in the map's units
 * but for `tools`, the rectangle of the buttons. */
export function drawMarks(context, view, colours, scene, ratio) {
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, view.width, view.height);
  context.lineJoin = "round";
  hits(context, view, colours, scene);
  if (scene.query) query(context, view, colours, scene.query);
  names(context, view, colours, scene);
  if (scene.pointed) ring(context, view, colours, scene.pointed);
  if (scene.keyed) cross(context, view, colours);
}

function seen([x, y], { width, height }, room = 20) {
  return x > -room && y > -room && x < width + room && y < height + room;
}

const CELL = 8; // pixels of a square in which points are counted
const ROOM = 6; // pixels that a name keeps from the edge
const STEPS = [[0, 0], ...[1, 2, 3].flatMap((far) => [[0, -1], [0, 1], [1, 0], [-1, 0], [1, -1], [-1, -1], [1, 1], [-1, 1]].map(([x, y]) => [x * far, y * far]))];

/** How many points lie in each square of the screen; squares move with the map, so that names do not jump. */
function crowd(view, { x, y }) {
  const columns = Math.ceil(view.width / CELL) + 2, rows = Math.ceil(view.height / CELL) + 2;
  const [left, top] = view.toScreen(0, 0), shiftX = ((left % CELL) + CELL) % CELL, shiftY = ((top % CELL) + CELL) % CELL;
  const counts = new Uint16Array(columns * rows), { scale } = view;
  for (let point = 0; point < x.length; point += 1) {
    const column = Math.floor((x[point] * scale + left - shiftX) / CELL) + 1, row = Math.floor((y[point] * scale + top - shiftY) / CELL) + 1;
    if (column >= 0 && row >= 0 && column < columns && row < rows) counts[row * columns + column] += 1;
  }
  return ([boxLeft, boxTop, boxRight, boxBottom]) => {
    let sum = 0;
    for (let row = Math.floor((boxTop - shiftY) / CELL) + 1; row <= Math.floor((boxBottom - shiftY) / CELL) + 1; row += 1) {
      for (let column = Math.floor((boxLeft - shiftX) / CELL) + 1; column <= Math.floor((boxRight - shiftX) / CELL) + 1; column += 1) sum += counts[row * columns + column] ?? 0;
    }
    return sum;
  };
}

// Names stand near where their label is at home: where they cover few points, inside the edge, over no other name, no hit
// and no button. One without room is left out until there is some.
function names(context, view, colours, scene) {
  const lit = [...scene.hits.map((hit) => hit.position), ...(scene.query ? [scene.query] : [])].map(([x, y]) => view.toScreen(x, y));
  const taken = [scene.tools, ...lit.map(([x, y]) => [x - 10, y - 10, x + 10, y + 10])];
  const covered = crowd(view, scene);
  context.font = "600 12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Liberation Sans', sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (const { label, x, y } of scene.homes) {
    const home = view.toScreen(x, y);
    if (!seen(home, view, 0)) continue;
    const text = label.length > 28 ? `${label.slice(0, 27)}…` : label;
    const half = context.measureText(text).width / 2 + 5;
    let best = null;
    for (const [across, down] of STEPS) {
      const centre = [home[0] + across * (half * 0.5 + 8), home[1] + down * 18];
      const area = [centre[0] - half, centre[1] - 9, centre[0] + half, centre[1] + 9];
      if (area[0] < ROOM || area[1] < ROOM || area[2] > view.width - ROOM || area[3] > view.height - ROOM) continue;
      if (taken.some((other) => overlap(area, other))) continue;
      const cost = covered(area) + 0.35 * Math.hypot(centre[0] - home[0], centre[1] - home[1]);
      if (best === null || cost < best.cost) best = { cost, centre, area };
    }
    if (best === null) continue;
    taken.push(best.area);
    context.lineWidth = 4;
    context.strokeStyle = colours.halo;
    context.strokeText(text, ...best.centre);
    context.fillStyle = colours.ink;
    context.fillText(text, ...best.centre);
  }
}

const overlap = (one, other) => one[0] < other[2] && other[0] < one[2] && one[1] < other[3] && other[1] < one[3];

function disc(context, [x, y], radius) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
}

function hits(context, view, colours, { hits: found }) {
  for (const { position, colour } of [...found].reverse()) { // the best on top
    const place = view.toScreen(...position);
    if (!seen(place, view)) continue;
    for (const [radius, fill] of [[8, colours.halo], [6.7, colours.ink], [5.3, colours.halo], [4.4, colour]]) {
      disc(context, place, radius);
      context.fillStyle = fill;
      context.fill();
    }
  }
}

function query(context, view, colours, position) {
  const [x, y] = view.toScreen(...position);
  if (!seen([x, y], view)) return;
  const strokes = () => {
    disc(context, [x, y], 12);
    for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
      context.moveTo(x + dx * 8, y + dy * 8);
      context.lineTo(x + dx * 19, y + dy * 19);
    }
    context.stroke();
  };
  context.lineCap = "round";
  context.lineWidth = 5;
  context.strokeStyle = colours.halo;
  strokes();
  context.lineWidth = 2.5;
  context.strokeStyle = colours.accent;
  strokes();
}

function ring(context, view, colours, position) {
  const place = view.toScreen(...position);
  for (const [width, colour] of [[5, colours.halo], [2.5, colours.ink]]) {
    disc(context, place, 11);
    context.lineWidth = width;
    context.strokeStyle = colour;
    context.stroke();
  }
}

// Where Enter opens, for those who move the map by keys.
function cross(context, { width, height }, colours) {
  context.lineWidth = 1.5;
  context.strokeStyle = colours.ink;
  context.globalAlpha = 0.5;
  context.beginPath();
  context.moveTo(width / 2 - 7, height / 2);
  context.lineTo(width / 2 + 7, height / 2);
  context.moveTo(width / 2, height / 2 - 7);
  context.lineTo(width / 2, height / 2 + 7);
  context.stroke();
  context.globalAlpha = 1;
}
