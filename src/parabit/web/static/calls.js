// Talking to the server: JSON there and back, the token, and errors that say what happened.

const TOKEN = "parabit-token";
const GATEWAY = [502, 504]; // what stands in between answers so for a server that is gone

/** The server answered, but not with what was asked for. */
export class Refused extends Error {
  constructor(status, message, hint = "", retryAfter = null) {
    super(message);
    Object.assign(this, { status, hint, retryAfter });
  }
}

/** The server did not answer. */
export class Unreachable extends Error {}

let askToken = null; // how to ask for a token: (what was wrong) => a promise of one, or null where none is given
let asked = null; // the question that is open now, so that several calls ask once

export function onToken(ask) {
  askToken = ask;
}

export function token() {
  try { return sessionStorage.getItem(TOKEN) ?? ""; } catch { return remembered; }
}

let remembered = "";

export function keepToken(value) {
  remembered = value;
  try {
    if (value) sessionStorage.setItem(TOKEN, value);
    else sessionStorage.removeItem(TOKEN);
  } catch { /* storage may be forbidden; this page still knows it */ }
}

/** The answer as it came, with the token sent along; `Unreachable` if there is none. */
export async function send(path, { method = "GET", body, signal } = {}) {
  const headers = {};
  if (token()) headers.Authorization = `Bearer ${token()}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method, headers, body, signal, cache: "no-store", credentials: "same-origin" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Unreachable("the server does not answer");
  }
  if (GATEWAY.includes(answer.status)) throw new Unreachable("the server behind the gateway does not answer");
  return answer;
}

/** What the server answers, as JSON; throws `Refused` or `Unreachable`. Asks for the token where it is wanted. */
export async function call(path, { body, signal } = {}) {
  const used = token();
  const options = body === undefined ? { signal } : { method: "POST", body: JSON.stringify(body), signal };
  const answer = await send(path, options);
  const content = await read(answer, signal);
  if (answer.ok) return content;
  const { error, hint, detail } = content ?? {};
  const message = typeof error === "string" ? error : `the server answered ${answer.status}`;
  if (answer.status === 401 && askToken) {
    if (token() === used) {
      asked ??= askToken(used ? message : "").finally(() => { asked = null; });
      if (!(await asked)) throw new Refused(401, message, hint);
    }
    signal?.throwIfAborted();
    return call(path, { body, signal });
  }
  const wait = Number.parseFloat(answer.headers.get("Retry-After"));
  const told = typeof hint === "string" ? hint : typeof detail === "string" ? detail : "";
  throw new Refused(answer.status, message, told, Number.isFinite(wait) ? wait : null);
}

async function read(answer, signal) {
  let text;
  try {
    text = await answer.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Unreachable("the server broke off its answer");
  }
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const parameters = (values) => new URLSearchParams(Object.entries(values).filter(([, value]) => value != null)).toString();

// A query that long does not fit into an address; the first of its words are enough to mark.
const MARKED = 2000;

export const server = {
  about: () => call("/api/about"),
  fields: () => call("/api/fields"),
  start: () => call("/api/start"),
  map: () => call("/api/map"),
  search: (body, signal) => call("/api/search", { body, signal }),
  document: (id, { query, like }, signal) =>
    call(`/api/document?${parameters({ id, query: query?.slice(0, MARKED) || null, like })}`, { signal }),
  /** Whether the server answers, be it that it is unwell: what is asked next then says why. */
  async answers() {
    try {
      await send("/healthz");
      return true;
    } catch {
      return false;
    }
  },
};
