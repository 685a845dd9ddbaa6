// What lies over the points of the map: names of labels, the hits, the query's place, what is pointed at.

/** Draw everything over the points. `scene`: {homes, hits, query, pointed, keyed}, places in the map's units. */
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

const SHIFTS = [0, -22, 22, -40, 40]; // pixels that a name may move up or down to find room

// Names stand where their label is at home, beside what is lit there; one without room is left out until there is some.
function names(context, view, colours, { homes, hits: found, query: asked }) {
  const lit = [...found.map((hit) => hit.position), ...(asked ? [asked] : [])].map(([x, y]) => view.toScreen(x, y));
  const taken = lit.map(([x, y]) => [x - 9, y - 9, x + 9, y + 9]);
  context.font = "600 12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Liberation Sans', sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (const { label, x, y } of homes) {
    const place = view.toScreen(x, y);
    const text = label.length > 28 ? `${label.slice(0, 27)}…` : label;
    const half = context.measureText(text).width / 2 + 4;
    const centre = Math.min(Math.max(place[0], half + 2), view.width - half - 2); // whole, at the edge too
    const boxAt = (shift) => [centre - half, place[1] + shift - 9, centre + half, place[1] + shift + 9];
    const shift = SHIFTS.find((by) => !taken.some((other) => overlap(boxAt(by), other)));
    if (!seen(place, view, 0) || shift === undefined) continue;
    taken.push(boxAt(shift));
    context.lineWidth = 3.5;
    context.strokeStyle = colours.halo;
    context.strokeText(text, centre, place[1] + shift);
    context.fillStyle = colours.ink;
    context.fillText(text, centre, place[1] + shift);
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
