// The page of the API, made from /openapi.json.

import { operationSection, prose } from "./api-operation.js";
import { call, keepToken, onToken, Unreachable } from "./calls.js";
import { askForToken } from "./dialogs.js";
import { $, counted, el, put } from "./dom.js";
import { icon, placeIcons } from "./icons.js";

const METHODS = ["get", "post", "put", "patch", "delete"];
const AGAIN = 2000; // milliseconds until a server that is gone is looked for again

/** All operations, in the order of the description. */
function operationsOf(spec) {
  return Object.entries(spec.paths ?? {}).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => {
      const operation = item[method];
      return { id: `${method}${path.replace(/[^A-Za-z0-9]+/g, "-")}`, method, path, operation };
    }));
}

function fill(spec) {
  const operations = operationsOf(spec);
  put($("contents"), operations.map(({ id, method, path }) =>
    el("a", { href: `#${id}` }, el("span", { class: `method ${method}` }, method.toUpperCase()), path)));
  put($("operations"),
    el("div", { class: "intro" },
      el("h1", {}, spec.info?.title ?? "API"),
      el("p", { class: "quiet" }, `Version ${spec.info?.version ?? "unknown"}, ${counted(operations.length, "operation")}; also as `, el("a", { href: "/openapi.json" }, "openapi.json"), "."),
      prose(spec.info?.description)),
    operations.map((operation) => operationSection(spec, operation)));
  document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
}

async function load() {
  try {
    fill(await call("/openapi.json"));
    $("banner").hidden = true;
  } catch (error) {
    if (error instanceof Unreachable) {
      put($("banner"), "The connection is lost; trying again …");
      $("banner").hidden = false;
      setTimeout(load, AGAIN);
    } else {
      put($("operations"), el("p", { class: "wrong" }, error.message, error.hint ? `; ${error.hint}` : "", "."),
        el("p", {}, el("button", { class: "button", type: "button", onclick: load }, "Try again")));
    }
  }
}

function showTheme() {
  const dark = window.parabitTheme.isDark();
  put($("theme-button"), icon(dark ? "sun" : "moon"));
  $("theme-button").setAttribute("aria-label", dark ? "Light page" : "Dark page");
}

async function changeToken() {
  keepToken("");
  await askForToken("");
  for (const form of document.querySelectorAll("form.try")) form.dispatchEvent(new Event("token"));
}

placeIcons();
showTheme();
document.documentElement.addEventListener("theme", showTheme);
$("theme-button").addEventListener("click", () => window.parabitTheme.toggle());
$("token-button").addEventListener("click", changeToken);
onToken(askForToken);
load();
