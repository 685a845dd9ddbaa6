// A whole document, in a panel at the side.

import { differing, grid } from "./bits.js";
import { Refused, server, Unreachable } from "./calls.js";
import { closeButton, closeOutside } from "./dialogs.js";
import { $, counted, el, marked, number, put } from "./dom.js";
import { chip, nameOf, told } from "./hits.js";
import { icon } from "./icons.js";
import { closeDocument, current, likeness } from "./state.js";

export class DocumentPanel {
  /** `acts`: open(id), like(id), filter(label), lost(); `hits()` gives the ids of the hits. */
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
      el("h2", { id: "document-title", tabindex: "-1" }, name),
      el("div", { class: "tools" },
        place >= 0 && ids.length > 1
          ? [step(-1, "The hit before (←)", "back"), el("span", { class: "quiet steps" }, `${place + 1} of ${ids.length}`), step(1, "The next hit (→)", "next")]
          : null,
        closeButton(closeDocument)));
  }

  fail(id, error) {
    const hint = error instanceof Refused ? error.hint : "";
    put(this.dialog, this.head(String(id)),
      el("p", { class: "wrong" }, error.message, hint ? `; ${hint}` : "", "."));
  }

  fill() {
    const { found, about, like } = this.found;
    const { name, field } = nameOf(found);
    const { labels } = current();
    const same = like !== null && String(like) === String(found.id);
    const other = same ? null : this.code;
    const fields = Object.entries(found.fields).filter(([key]) => key !== field);
    if (field) fields.unshift(["id", found.id]);
    put(this.dialog,
      this.head(name),
      el("div", { class: "document-body" },
        el("aside", { class: "document-side" },
          this.codeOf(found, about, other, like),
          same ? null : el("button", { class: "button", type: "button", onclick: () => this.acts.like(found.id) }, icon("like"), "More like this"),
          found.labels.length
            ? el("div", { class: "chips" }, found.labels.map((label) => chip(label, { pressed: labels.includes(label), onclick: () => this.acts.filter(label) })))
            : null,
          fields.length ? el("dl", { class: "fields" }, fields.map(([key, value]) => [el("dt", {}, key), el("dd", {}, told(value))])) : null),
        el("div", { class: "document-text" },
          found.text.length ? marked(found.text) : el("p", { class: "quiet" }, "The index keeps no texts, only codes and fields."),
          found.cut ? el("p", { class: "quiet" }, "The text goes on; its first 200,000 characters are shown.") : null)));
    this.dialog.scrollTop = 0;
    $("document-title").focus({ preventScroll: true });
  }

  codeOf(found, about, other, like) {
    const bits = counted(about.bits, "bit");
    const bytes = number(Math.ceil(about.bits / 8));
    if (other === null) {
      return el("figure", { class: "big-code" },
        grid(found.code, about.bits, { cell: 14, label: `Its code of ${bits}` }),
        el("figcaption", {}, `Its code: ${bits}, ${bytes} bytes.`));
    }
    const count = differing(found.code, other, about.bits);
    const what = like === null ? "the query's" : "the other document's";
    const swatch = (kind, text) => el("span", { class: "swatch" }, el("i", { class: kind, "aria-hidden": "true" }), text);
    return el("figure", { class: "big-code" },
      grid(found.code, about.bits, { other, cell: 14, label: `Its code of ${bits}, ${count} of them other than ${what}` }),
      el("figcaption", {}, el("b", {}, number(count)), ` of ${bits} differ from ${what}.`,
        el("span", { class: "swatches" }, swatch("one", "1"), swatch("zero", "0"), swatch("one differs", "1, differs"), swatch("zero differs", "0, differs"))));
  }
}
