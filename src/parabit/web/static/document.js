// A whole document, in a panel at the side.

import { differing, grid } from "./bits.js";
import { Refused, server, Unreachable } from "./calls.js";
import { closeButton, closeOutside } from "./dialogs.js";
import { $, counted, el, marked, number, put } from "./dom.js";
import { nameOf } from "./fields.js";
import { chips, idLine, valueText } from "./hits.js";
import { icon } from "./icons.js";
import { closeDocument, current, likeness } from "./state.js";
import { nearness } from "./why.js";

export class DocumentPanel {
  /** `acts`: open(id), like(id), lost(); `hits()` gives the ids of the hits. */
  constructor(acts, hits) {
    Object.assign(this, { acts, hits, shown: null, found: null, code: null, control: null });
    this.dialog = $("document");
    this.dialog.addEventListener("cancel", (event) => { event.preventDefault(); closeDocument(); });
    this.dialog.addEventListener("keydown", (event) => this.key(event));
    closeOutside(this.dialog, closeDocument);
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "ArrowRight") this.step(1);
    else if (event.key === "ArrowLeft") this.step(-1);
    else if (event.key === "m" && this.shown !== null) this.acts.like(this.shown);
    else return;
    event.preventDefault();
  }

  step(by) {
    const ids = this.hits();
    const next = ids[ids.indexOf(this.shown) + by];
    if (ids.includes(this.shown) && next !== undefined) this.acts.open(next, "replace");
  }

  /** Show the document that the state names, or none. */
  async show(state, about) {
    if (state.doc === null) {
      this.control?.abort();
      this.shown = null;
      if (this.dialog.open) this.dialog.close();
      return;
    }
    if (state.doc === this.shown && this.dialog.open) return;
    this.control?.abort();
    this.control = new AbortController();
    const { signal } = this.control;
    this.shown = state.doc;
    this.found = null;
    if (!this.dialog.open) {
      put(this.dialog, this.head(String(state.doc)), el("p", { class: "quiet loading" }, "Reading …"));
      this.dialog.showModal();
    }
    const like = likeness(state);
    const context = like === null ? { query: state.q.trim() } : { like };
    try {
      const found = await server.document(state.doc, context, signal);
      if (signal.aborted) return;
      this.found = { found, about, like };
      this.fill();
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Unreachable) this.acts.lost();
      this.fail(state.doc, error);
    }
  }

  /** A search was answered while the document is open: now its code can be set beside the query's. */
  answered(code) {
    if (code === this.code) return;
    this.code = code;
    if (this.found && this.dialog.open) this.fill();
  }

  head(name) {
    const ids = this.hits(), place = ids.indexOf(this.shown);
    const step = (by, label, picture) => el("button", {
      class: "tool", type: "button", "aria-label": label, title: label, onclick: () => this.step(by),
      disabled: ids[place + by] === undefined,
    }, icon(picture));
    return el("header", { class: "document-head" },
      el("div", { class: "tools" },
        place >= 0 && ids.length > 1
          ? [step(-1, "The hit before (←)", "back"), el("span", { class: "quiet steps" }, `${place + 1} of ${ids.length}`), step(1, "The next hit (→)", "next")]
          : null,
        closeButton(closeDocument)),
      el("h2", { id: "document-title", tabindex: "-1" }, name));
  }

  fail(id, error) {
    const hint = error instanceof Refused ? error.hint : "";
    put(this.dialog, this.head(String(id)),
      el("p", { class: "wrong" }, error.message, hint ? `; ${hint}` : "", "."));
  }

  fill() {
    const { found, about, like } = this.found;
    const { where } = current();
    const same = like !== null && String(like) === String(found.id);
    const labels = chips(found.fields, where);
    const shown = new Set(labels.length ? Object.keys(found.fields).filter((name) => chips({ [name]: found.fields[name] }, where).length) : []);
    const fields = Object.entries(found.fields).filter(([key, value]) => !shown.has(key) && value !== null && value !== found.title);
    put(this.dialog,
      this.head(found.title),
      el("div", { class: "document-body" },
        idLine(found.id, found.title),
        labels.length ? el("div", { class: "chips" }, labels) : null,
        fields.length ? el("dl", { class: "document-fields" }, fields.map(([key, value]) => [el("dt", {}, nameOf(key)), el("dd", {}, valueText(value))])) : null,
        same ? null : el("p", {}, el("button", { class: "button", type: "button", onclick: () => this.acts.like(found.id) }, icon("like"), "More like this")),
        el("div", { class: "document-text" },
          found.text.length ? marked(found.text) : el("p", { class: "quiet" }, "The index keeps no texts, only codes and fields."),
          found.cut ? el("p", { class: "quiet" }, "The text goes on; its first 200,000 characters are shown.") : null),
        this.codeOf(found, about, same ? null : this.code, like)));
    this.dialog.scrollTop = 0;
    $("document-title").focus({ preventScroll: true });
  }

  codeOf(found, about, other, like) {
    const bits = counted(about.bits, "bit");
    const bytes = counted(Math.ceil(about.bits / 8), "byte");
    const what = like === null ? "the query's" : "the other document's";
    const count = other === null ? 0 : differing(found.code, other, about.bits);
    const swatch = (kind, text) => el("span", { class: "swatch" }, el("i", { class: kind, "aria-hidden": "true" }), text);
    return el("details", { class: "big-code", open: !found.text.length }, el("summary", {}, `Its code of ${bits}`),
      el("figure", {},
        grid(found.code, about.bits, { other, cell: 14, label: `Its code of ${bits}` }),
        other === null
          ? el("figcaption", {}, `${bits}, ${bytes}.`)
          : el("figcaption", {}, el("b", {}, number(count)), ` of ${bits} differ from ${what}: ${nearness(count, about.bits)}.`,
            el("span", { class: "swatches" }, swatch("one", "1"), swatch("zero", "0"), swatch("one differs", "1, differs"), swatch("zero differs", "0, differs")))));
  }
}
