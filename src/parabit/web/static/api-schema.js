// Reading an OpenAPI description: references, names of types, rows of a table, examples.

/** A schema with its reference followed. */
export function resolve(spec, schema) {
  let found = schema ?? {};
  for (let steps = 0; found.$ref && steps < 20; steps += 1) {
    found = found.$ref.replace(/^#\//, "").split("/").reduce((at, key) => at?.[key.replace(/~1/g, "/").replace(/~0/g, "~")], spec) ?? {};
  }
  return found;
}

/** "text", "list of numbers": a type in words. */
export function typeOf(spec, schema, depth = 0) {
  const name = schema?.$ref?.split("/").at(-1);
  const found = resolve(spec, schema);
  if (depth > 4) return name ?? "object";
  if (found.const !== undefined) return JSON.stringify(found.const);
  if (found.enum) return found.enum.map((value) => JSON.stringify(value)).join(" or ");
  const any = found.anyOf ?? found.oneOf;
  if (any) return [...new Set(any.map((one) => typeOf(spec, one, depth + 1)))].join(" or ");
  if (found.type === "array") return found.items && Object.keys(found.items).length ? `list of ${typeOf(spec, found.items, depth + 1)}` : "list";
  if (found.type === "object") return name ?? "object";
  return { string: "string", integer: "integer", number: "number", boolean: "true or false", null: "null" }[found.type] ?? name ?? "anything";
}

const LIMITS = [["minimum", "at least"], ["maximum", "at most"], ["minLength", "characters at least"], ["maxLength", "characters at most"],
  ["maxItems", "entries at most"]];

function limits(found) {
  const told = LIMITS.filter(([key]) => found[key] !== undefined).map(([key, words]) =>
    (words.startsWith("at") ? `${words} ${found[key]}` : `${found[key]} ${words}`));
  if (found.default !== undefined && found.default !== null) told.push(`else ${JSON.stringify(found.default)}`);
  return told;
}

/** The rows of a schema's table, what is inside a thing after it: [{name, type, needed, told}]. */
export function rowsOf(spec, schema, prefix = "", depth = 0) {
  const found = resolve(spec, schema);
  if (depth > 3) return [];
  const rows = [];
  for (const [name, part] of Object.entries(found.properties ?? {})) {
    const inner = resolve(spec, part);
    const choices = (inner.anyOf ?? inner.oneOf ?? [inner]).map((one) => resolve(spec, one));
    const some = choices.find((one) => one.type !== "null") ?? inner;
    rows.push({
      name: prefix + name, type: typeOf(spec, part), needed: (found.required ?? []).includes(name),
      told: [part.description ?? inner.description, ...limits({ ...some, ...part })].filter(Boolean).join("; "),
    });
    for (const one of choices) {
      if (one.properties) rows.push(...rowsOf(spec, one, `${prefix}${name}.`, depth + 1));
      else if (one.type === "array") rows.push(...rowsOf(spec, one.items, `${prefix}${name}[].`, depth + 1));
    }
  }
  return rows;
}

/** Something that fits a schema: its own example, or one made up. */
export function exampleOf(spec, schema, depth = 0) {
  const found = resolve(spec, schema);
  if (found.example !== undefined) return found.example;
  if (found.examples?.length) return found.examples[0];
  if (found.default !== undefined) return found.default;
  if (found.const !== undefined) return found.const;
  if (found.enum) return found.enum[0];
  const any = found.anyOf ?? found.oneOf;
  if (any) return exampleOf(spec, any.find((one) => one.type !== "null") ?? any[0], depth + 1);
  if (found.type === "object" || found.properties) {
    if (depth > 3) return {};
    const needed = found.required ?? [];
    return Object.fromEntries(needed.map((name) => [name, exampleOf(spec, found.properties[name], depth + 1)]));
  }
  if (found.type === "array") return [];
  return { integer: found.minimum ?? 1, number: 1, boolean: true, string: "" }[found.type] ?? null;
}
