// One search at a time: a newer one drops the answer of an older one, and the old hits stay until new ones are there.

import { Refused, server, Unreachable } from "./calls.js";
import { asks, likeness } from "./state.js";

const BUSY = 5; // times that a busy server is asked again
const SLOW = 250; // milliseconds after which a search shows that it is under way

const DAY = /^\d{4}-\d\d-\d\d$/;

/** The conditions of a state as the API takes them; the last day of a range belongs to it. */
function conditions(where) {
  return Object.fromEntries(Object.entries(where).map(([name, { in: values, min, max }]) => {
    const last = typeof max === "string" && DAY.test(max) ? `${max}T23:59:59.999999` : max;
    return [name, { ...(values && { "=": values }), ...(min !== undefined && { ">=": min }), ...(max !== undefined && { "<=": last }) }];
  }));
}

/** What is sent for a state. */
export function question(state) {
  const { k, radius, rank, copies } = state;
  const like = likeness(state);
  const what = like === null ? { query: state.q.trim() } : { like };
  return { ...what, k, radius, rank, where: conditions(state.where), collapse: copies, positions: !document.body.matches(".no-map, .map-hidden") };
}

export class Search {
  /** `shows` has what happens: found(answer, asked), failed(error), lost(), slow(yes), nothing(). */
  constructor(shows) {
    this.shows = shows;
    this.asked = null; // the question on its way or answered, as JSON
    this.running = null;
    this.timers = [];
  }

  /** Search for a state, unless that is what was asked last. */
  run(state, { again = false } = {}) {
    if (!asks(state)) {
      this.stop();
      this.shows.nothing();
      return;
    }
    const asked = question(state);
    const written = JSON.stringify(asked);
    if (written === this.asked && !again) return;
    this.stop();
    this.asked = written;
    this.ask(asked, BUSY);
  }

  async ask(asked, tries) {
    const control = new AbortController();
    this.running = control;
    this.timers.push(setTimeout(() => this.shows.slow(true), SLOW));
    try {
      const answer = await server.search(asked, control.signal);
      if (control.signal.aborted) return;
      this.settled();
      this.shows.found(answer, asked);
    } catch (error) {
      if (control.signal.aborted) return;
      this.settled();
      if (error instanceof Unreachable) this.shows.lost();
      else if (error instanceof Refused && error.status === 503 && tries > 0) {
        const wait = Math.min(Math.max(error.retryAfter ?? 1, 0.5), 30);
        this.shows.failed(error, wait);
        this.timers.push(setTimeout(() => this.ask(asked, tries - 1), wait * 1000));
      } else this.shows.failed(error);
    }
  }

  settled() {
    this.timers.splice(0).forEach(clearTimeout);
    this.shows.slow(false);
  }

  stop() {
    this.running?.abort();
    this.running = null;
    this.asked = null;
    this.settled();
  }
}
