// One operation of the API: what it does, what it takes and gives, how curl would ask, and a form to try it.

import { exampleOf, resolve, rowsOf, typeOf } from "./api-schema.js";
import { send, token } from "./calls.js";
import { el, number, put } from "./dom.js";

const SHOWN = 50000; // characters of an answer

/** Paragraphs of a description, with `code` as such. */
export function prose(text) {
  const spans = (part) => part.split("`").map((span, place) => (place % 2 ? el("code", {}, span) : span));
  return (text ?? "").split(/\n\s*\n/).filter((part) => part.trim()).map((part) => el("p", {}, spans(part.trim())));
}

const inline = (text) => text.split("`").map((span, place) => (place % 2 ? el("code", {}, span) : span));

function table(rows) {
  if (!rows.length) return null;
  return el("div", { class: "table" }, el("table", {},
    el("thead", {}, el("tr", {}, ["Name", "Type", "What"].map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, rows.map(({ name, type, needed, told }) => {
      const parts = name.split(/(?<=\.)/), last = parts.pop();
      return el("tr", {},
        el("td", {}, el("code", {}, parts.length ? el("span", { class: "deep" }, parts.join("")) : null, last), needed ? el("span", { class: "needed" }, "needed") : null),
        el("td", { class: "type" }, type), el("td", {}, inline(told)));
    }))));
}

const contentOf = (spec, part) => {
  const [type, content] = Object.entries(resolve(spec, part)?.content ?? {})[0] ?? [null, null];
  return { type, schema: content?.schema, example: content?.example ?? Object.values(content?.examples ?? {})[0]?.value };
};

function responses(spec, operation) {
  return Object.entries(operation.responses ?? {}).map(([status, response]) => {
    const { type, schema } = contentOf(spec, response);
    const rows = schema ? rowsOf(spec, schema) : [];
    return el("details", { open: false },
      el("summary", {}, el("span", { class: "status" }, status), resolve(spec, response).description ?? "",
        schema ? el("span", { class: "type" }, ` ${typeOf(spec, schema)}`) : type ? el("span", { class: "type" }, ` ${type}`) : null),
      table(rows));
  });
}

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** The request as a command. */
export function curl(method, path, body) {
  const parts = ["curl"];
  if (method !== "GET") parts.push(`-X ${method}`);
  if (token()) parts.push('-H "Authorization: Bearer $TOKEN"');
  if (body !== null) parts.push("-H 'Content-Type: application/json'", `-d ${quoted(body)}`);
  parts.push(quoted(location.origin + path));
  return parts.join(" ");
}

/** An operation as a section; `{method, path, operation}` of the description. */
export function operationSection(spec, { id, method, path, operation }) {
  const parameters = (operation.parameters ?? []).map((parameter) => resolve(spec, parameter));
  const body = operation.requestBody ? contentOf(spec, operation.requestBody) : null;
  const rows = parameters.map(({ name, schema, required, description }) => ({
    name, type: typeOf(spec, schema), needed: required, told: description ?? resolve(spec, schema).description ?? "",
  }));
  return el("section", { class: "operation", id, "aria-labelledby": `${id}-title` },
    el("h2", { id: `${id}-title` }, el("span", { class: `method ${method}` }, method.toUpperCase()), path),
    operation.summary ? el("p", { class: "summary" }, operation.summary) : null,
    prose(operation.description),
    rows.length ? [el("h3", {}, "Parameters"), table(rows)] : null,
    body ? [el("h3", {}, "Body"), table(rowsOf(spec, body.schema))] : null,
    el("h3", {}, "Answers"), responses(spec, operation),
    el("h3", {}, "Try it"), tryIt(spec, method.toUpperCase(), path, parameters, body));
}

function tryIt(spec, method, path, parameters, body) {
  const fields = parameters.map((parameter) => ({
    ...parameter,
    input: el("input", { type: "text", class: "field", name: parameter.name, required: parameter.required, spellcheck: "false", value: parameter.example ?? "" }),
  }));
  const example = body ? JSON.stringify(body.example ?? exampleOf(spec, body.schema), null, 2) : null;
  const content = body ? el("textarea", { name: "body", rows: Math.min(12, example.split("\n").length), spellcheck: "false" }) : null;
  if (content) content.value = example;
  const command = el("code", {});
  const told = el("span", { class: "quiet", role: "status" });
  const answer = el("pre", { class: "answer", hidden: true, tabindex: "0", "aria-label": "The answer" });

  const asked = () => {
    let where = path;
    const query = new URLSearchParams();
    for (const { name, in: place, input } of fields) {
      if (place === "path") where = where.replace(`{${name}}`, encodeURIComponent(input.value));
      else if (place === "query" && input.value) query.append(name, input.value);
    }
    return { where: query.size ? `${where}?${query}` : where, sent: content ? content.value : null };
  };
  const write = () => { const { where, sent } = asked(); put(command, curl(method, where, sent)); };
  const ask = async (event) => {
    event.preventDefault();
    const { where, sent } = asked();
    const start = performance.now();
    put(told, "Asking …");
    try {
      const got = await send(where, { method, body: sent ?? undefined });
      const text = await got.text();
      put(told, el("b", { class: got.ok ? "" : "wrong" }, `${got.status} ${got.statusText}`), `, ${number(text.length)} characters in ${Math.round(performance.now() - start)} ms`);
      show(answer, text);
    } catch (error) {
      put(told, el("span", { class: "wrong" }, error.message));
      answer.hidden = true;
    }
  };
  write();
  const form = el("form", { class: "try", onsubmit: ask, oninput: write },
    fields.map(({ name, input, required }) => el("label", {}, el("span", {}, name, required ? el("span", { class: "needed" }, "needed") : null), input)),
    content ? el("label", {}, "Body", content) : null,
    el("div", { class: "row" }, el("button", { class: "button", type: "submit" }, "Send"), told),
    answer,
    el("div", { class: "curl" }, el("pre", {}, command), copyButton(command)));
  form.addEventListener("token", write);
  return form;
}

function show(answer, text) {
  let pretty = text;
  try { pretty = JSON.stringify(JSON.parse(text), null, 2); } catch { /* not JSON: as it is */ }
  put(answer, pretty.length > SHOWN ? `${pretty.slice(0, SHOWN)}\n… and ${number(pretty.length - SHOWN)} characters more` : pretty);
  answer.hidden = false;
}

function copyButton(command) {
  const button = el("button", { class: "plain", type: "button" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(command.textContent);
      put(button, "Copied");
    } catch {
      getSelection().selectAllChildren(command); // without leave to copy, at least it is selected
      put(button, "Selected");
    }
    setTimeout(() => put(button, "Copy"), 1500);
  });
  return button;
}
