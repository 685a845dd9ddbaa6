// When the server is gone: say so, look for it, and go on when it is back.

import { server } from "./calls.js";
import { $, put } from "./dom.js";

const FIRST = 500, LAST = 5000; // milliseconds between looks, growing

export class Connection {
  /** `back` is run when the server answers again. */
  constructor(back) {
    this.back = back;
    this.timer = null;
    this.wait = FIRST;
    addEventListener("online", () => { if (this.timer) this.look(); });
  }

  lost() {
    if (this.timer) return;
    put($("banner"), "The connection is lost; trying again …");
    $("banner").hidden = false;
    this.wait = FIRST;
    this.later();
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.look(), this.wait);
    this.wait = Math.min(this.wait * 1.5, LAST);
  }

  async look() {
    if (!(await server.answers())) {
      this.later();
      return;
    }
    clearTimeout(this.timer);
    this.timer = null;
    $("banner").hidden = true;
    this.back();
  }
}
