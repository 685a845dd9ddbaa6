// The few pictures of the page, drawn with lines of one width.

import { svg } from "./dom.js";

const LINES = {
  search: ["M10.5 4a6.5 6.5 0 1 0 0 13a6.5 6.5 0 0 0 0-13z", "M15.5 15.5L20 20"],
  close: ["M6 6l12 12", "M18 6L6 18"],
  like: ["M8.5 8.5h11v11h-11z", "M4.5 15.5v-11h11"],
  open: ["M5 5h14v14H5z", "M13 5v14"],
  back: ["M19 12H5", "M11 6l-6 6l6 6"],
  next: ["M5 12h14", "M13 6l6 6l-6 6"],
  plus: ["M12 5v14", "M5 12h14"],
  minus: ["M5 12h14"],
  whole: ["M4 9V4h5", "M15 4h5v5", "M20 15v5h-5", "M9 20H4v-5"],
  aim: ["M12 7a5 5 0 1 0 0 10a5 5 0 0 0 0-10z", "M12 2v4", "M12 18v4", "M2 12h4", "M18 12h4"],
  sun: ["M12 8a4 4 0 1 0 0 8a4 4 0 0 0 0-8z", "M12 2v2.5", "M12 19.5V22", "M2 12h2.5", "M19.5 12H22",
    "M4.9 4.9l1.8 1.8", "M17.3 17.3l1.8 1.8", "M4.9 19.1l1.8-1.8", "M17.3 6.7l1.8-1.8"],
  moon: ["M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z"],
  options: ["M4 7h9", "M17 7h3", "M15 5v4", "M4 17h3", "M11 17h9", "M9 15v4"],
  down: ["M6 9l6 6l6-6"],
  tag: ["M4 4h8l8 8l-8 8l-8-8z", "M8 8h.01"],
  map: ["M4 6l5-2l6 2l5-2v14l-5 2l-6-2l-5 2z", "M9 4v14", "M15 6v14"],
  copy: ["M9 9h11v11H9z", "M5 15H4V4h11v1"],
  check: ["M5 12.5l4.5 4.5L19 7.5"],
  why: ["M4 19V9", "M10 19V5", "M16 19v-7", "M22 19H2"],
  calendar: ["M4 6h16v14H4z", "M4 10h16", "M8 3v4", "M16 3v4"],
  range: ["M3 12h18", "M8 8v8", "M16 8v8"],
  text: ["M5 6h14", "M12 6v13"],
  layers: ["M12 4l9 5l-9 5l-9-5z", "M3 14l9 5l9-5"],
  key: ["M8 8a4 4 0 1 0 0 8a4 4 0 0 0 0-8z", "M12 12h9", "M18 12v4"],
};

/** A picture by its name; what it means must stand beside it, or in the label of its button. */
export function icon(name) {
  const lines = LINES[name].map((d) => svg("path", { d }));
  return svg("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true", focusable: "false" }, lines);
}

/** Put pictures where the page has <span data-icon="name">. */
export function placeIcons(root = document) {
  for (const place of root.querySelectorAll("[data-icon]")) place.replaceWith(icon(place.dataset.icon));
}
