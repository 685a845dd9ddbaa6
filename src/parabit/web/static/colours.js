// Colours of labels. Twelve for the most frequent ones, grey for the others.
//
// The two sets were found by a search for twelve colours with contrast to their background whose least difference (in
// OKLab, with grey as a thirteenth) is largest as seen with normal eyes and with each kind of colour blindness.

const LIGHT = ["#2559d1", "#ba6e25", "#19a17c", "#c20949", "#8c69fe", "#bfa622", "#0db1f8", "#f561c0", "#356001", "#5b11a5",
  "#7e165c", "#875e98"];
const DARK = ["#1fa2fc", "#f8a396", "#1c9576", "#fa4780", "#835bf5", "#f3d41c", "#52d1ed", "#c03aba", "#9dba25", "#977626",
  "#a8f2bd", "#b785b9"];

export const COLOURS = LIGHT.length;

/** The colours of the canvas, which cannot read the style sheet's. */
export const THEMES = {
  light: { labels: LIGHT, other: "#bec3c9", page: "#ffffff", ink: "#14181d", accent: "#0b5cad", halo: "#ffffff" },
  dark: { labels: DARK, other: "#545c66", page: "#14181d", ink: "#f2f4f6", accent: "#7db8f0", halo: "#14181d" },
};

const places = new Map();

/** Which labels have a colour: the first of those given, most frequent first. */
export function colourLabels(labels) {
  places.clear();
  labels.slice(0, COLOURS).forEach((label, place) => places.set(label, place));
}

/** The place of a label's colour, or -1 for grey. */
export const placeOf = (label) => places.get(label) ?? -1;

/** A label's colour as the style sheet knows it. */
export const colourOf = (label) => (places.has(label) ? `var(--label-${places.get(label)})` : "var(--label-other)");

export const theme = () => THEMES[window.parabitTheme.isDark() ? "dark" : "light"];

/** Hand the colours to the style sheet, now and whenever the page turns dark or light. */
export function shareColours(then) {
  const root = document.documentElement;
  const share = () => {
    const { labels, other } = theme();
    labels.forEach((colour, place) => root.style.setProperty(`--label-${place}`, colour));
    root.style.setProperty("--label-other", other);
    then();
  };
  root.addEventListener("theme", share);
  share();
}

/** [red, green, blue] of "#rrggbb". */
export const channels = (colour) => [1, 3, 5].map((start) => Number.parseInt(colour.slice(start, start + 2), 16));

/** A colour over another, both as channels; `part` is how much of the first is left. */
export const mixed = (colour, below, part) => colour.map((value, place) => Math.round(value * part + below[place] * (1 - part)));
