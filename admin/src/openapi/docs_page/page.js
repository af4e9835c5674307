"use strict";
// Reads the document beside it and shows it: inference first, then the control plane, then the schemas. Everything is
// made as nodes, never as markup, so that no text of the document can be more than text.
const main = document.getElementById("main");
const gateway = document.querySelector("meta[name=gateway]").content;
let key = "";

function make(tag, options, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(options || {})) {
    if (name === "text") node.textContent = value; else node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

const resolve = (doc, part) => part && part.$ref ? part.$ref.split("/").slice(1).reduce((at, name) => at[name], doc) : part;

// Words between backticks are code.
const rich = (text) => (text || "").split("`").map((part, index) => index % 2 ? make("code", { text: part }) : part);

function joined(groups, word) {
  return groups.flatMap((nodes, index) => index ? [word, ...nodes] : nodes);
}

function kind(schema) {
  if (!schema) return [];
  if (schema.$ref) {
    const name = schema.$ref.split("/").pop();
    return [make("a", { href: "#schema-" + name, text: name })];
  }
  if (schema.anyOf) return joined(schema.anyOf.map(kind), " or ");
  if ("const" in schema) return [JSON.stringify(schema.const)];
  if (schema.enum) return [schema.enum.map((one) => JSON.stringify(one)).join(", ")];
  const types = [schema.type || "anything"].flat();
  if (types.includes("array")) return ["list of ", ...kind(schema.items), types.includes("null") ? " or null" : ""];
  return [types.join(" or ") + (schema.format ? " (" + schema.format + ")" : "")];
}

const LIMITS = { minLength: "at least # characters", maxLength: "at most # characters", minimum: "at least #", maximum: "at most #", minItems: "at least # items", maxItems: "at most # items", pattern: "matches #" };

function facts(schema) {
  const limits = Object.keys(LIMITS).filter((name) => name in schema).map((name) => LIMITS[name].replace("#", schema[name]));
  if ("default" in schema) limits.unshift("default " + JSON.stringify(schema.default));
  for (const one of schema.examples || []) limits.push("for example " + JSON.stringify(one));
  return limits.length ? [" " + limits.join("; ") + "."] : [];
}

function table(heads, rows) {
  const head = make("tr", {}, ...heads.map((text) => make("th", { text, scope: "col" })));
  return make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
}

function fields(schema) {
  const required = schema.required || [];
  const rows = Object.entries(schema.properties || {}).map(([name, field]) => make("tr", {},
    make("td", {}, make("code", { text: name }), required.includes(name) ? make("span", { text: " required", class: "dim" }) : null),
    make("td", {}, ...kind(field)),
    make("td", {}, ...rich(field.description), make("span", { class: "dim" }, ...facts(field)))));
  return table(["Field", "Type", "Meaning"], rows);
}

function shape(doc, schema) {
  const forms = (schema.anyOf || [schema]).map((form) => resolve(doc, form));
  return forms.filter((form) => form && Object.keys(form.properties || {}).length).map(fields);
}

const pretty = (value) => make("pre", { text: JSON.stringify(value, null, 2), tabindex: "0" });

// Where an operation is served: the proxy has the inference, this service the rest.
const base = (doc, operation) => (operation.tags[0] === "inference" ? gateway : location.origin) + doc.servers[0].url;

function parametersOf(doc, operation, place) {
  return operation.parameters.map((one) => resolve(doc, one)).filter((one) => one.in === place);
}

function curl(doc, path, method, operation) {
  const filled = path.replace(/\{(\w+)\}/g, (all, name) => {
    const found = parametersOf(doc, operation, "path").find((one) => one.name === name);
    return encodeURIComponent(found ? found.example : name);
  });
  const lines = ["curl -X " + method.toUpperCase() + " " + base(doc, operation) + filled];
  if (operation.security.length) lines.push("-H 'x-gateway-api-key: '\"$GATEWAY_API_KEY\"");
  const content = operation.requestBody ? operation.requestBody.content : {};
  if (content["application/json"]) {
    lines.push("-H 'content-type: application/json'");
    lines.push("-d '" + JSON.stringify(content["application/json"].example).replaceAll("'", "'\\''") + "'");
  } else if (content["multipart/form-data"]) {
    for (const [name, field] of formFields(doc, content)) lines.push("-F '" + name + "=" + (isFile(field) ? "@" + name : "…") + "'");
  }
  return make("pre", { text: lines.join(" \\\n  "), tabindex: "0" });
}

const formFields = (doc, content) => Object.entries(resolve(doc, content["multipart/form-data"].schema).properties || {});
const isFile = (field) => (field.description || "").startsWith("The bytes of the file");

function field(label, node) {
  return make("label", {}, label, node);
}

// Sends what the form says and shows what comes back, a stream as it comes.
function attempt(doc, path, method, operation) {
  const inPath = parametersOf(doc, operation, "path").map((one) => [one.name, make("input", { value: one.example })]);
  const inQuery = parametersOf(doc, operation, "query").length ? make("input", { placeholder: "name=value&name=value" }) : null;
  const own = operation.tags[0] === "inference" ? "x-gateway-provider: @slug" : "name: value";
  const headers = make("textarea", { rows: "2", placeholder: own + ", one header a line", spellcheck: "false" });
  const content = operation.requestBody ? operation.requestBody.content : {};
  const json = content["application/json"] ? make("textarea", { rows: "8", spellcheck: "false" }) : null;
  if (json) json.value = JSON.stringify(content["application/json"].example, null, 2);
  const form = content["multipart/form-data"] ? formFields(doc, content).map(([name, one]) => [name, make("input", { type: isFile(one) ? "file" : "text" })]) : [];
  const button = make("button", { type: "button", text: "Send" });
  const result = make("pre", { tabindex: "0", role: "status", "aria-label": "Answer", hidden: "" });
  button.addEventListener("click", async () => {
    result.hidden = false;
    result.textContent = "Waiting…";
    try {
      const filled = inPath.reduce((at, [name, input]) => at.replace("{" + name + "}", encodeURIComponent(input.value)), path);
      const sent = new Headers();
      if (key) sent.set("x-gateway-api-key", key);
      for (const line of headers.value.split("\n").filter((text) => text.includes(":"))) {
        sent.set(line.slice(0, line.indexOf(":")).trim(), line.slice(line.indexOf(":") + 1).trim());
      }
      let body;
      if (json) { body = json.value; sent.set("content-type", "application/json"); }
      if (form.length) {
        body = new FormData();
        for (const [name, input] of form) if (input.files ? input.files.length : input.value) body.append(name, input.files ? input.files[0] : input.value);
      }
      const query = inQuery && inQuery.value ? "?" + inQuery.value : "";
      const answer = await fetch(base(doc, operation) + filled + query, { method: method.toUpperCase(), headers: sent, body });
      const told = [...answer.headers].map(([name, value]) => name + ": " + value).join("\n");
      result.textContent = answer.status + " " + answer.statusText + "\n" + told + "\n\n";
      await append(result, answer);
    } catch (error) {
      result.textContent = "Nothing came back: " + error + "\nIs " + base(doc, operation) + " what the browser can reach? PUBLIC_URL says where the proxy is.";
    }
  });
  const parts = [...inPath.map(([name, input]) => field(name, input)), inQuery && field("Query", inQuery), field("Headers", headers),
    json && field("Body", json), ...form.map(([name, input]) => field(name, input))];
  return make("div", { class: "try" }, ...parts, button, result);
}

async function append(result, answer) {
  const isJson = (answer.headers.get("content-type") || "").includes("json");
  if (isJson || !answer.body) {
    const text = await answer.text();
    let shown = text;
    try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch { /* shown as it came */ }
    result.append(shown);
    return;
  }
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) result.append(part.value);
}

function inside(doc, path, method, operation) {
  const node = make("div", { class: "inside" }, make("p", {}, ...rich(operation.description)),
    make("p", {}, make("a", { href: "#" + operation.operationId, text: "Link to this operation" })));
  for (const [place, title] of [["path", "Path"], ["query", "Query"], ["header", "Headers"]]) {
    const found = parametersOf(doc, operation, place);
    const properties = Object.fromEntries(found.map((one) => [one.name, Object.assign({}, one.schema, { description: one.description })]));
    if (found.length) node.append(make("h3", { text: title }), fields({ properties }));
  }
  const content = operation.requestBody ? operation.requestBody.content : {};
  for (const [type, body] of Object.entries(content)) {
    node.append(make("h3", { text: type === "multipart/form-data" ? "Form" : "Body" }), make("p", { class: "dim", text: type }), ...shape(doc, body.schema));
    if (type === "application/json") node.append(pretty(body.example));
  }
  const success = resolve(doc, operation.responses["200"] || operation.responses["101"] || operation.responses["303"]);
  if (success) {
    node.append(make("h3", { text: "Answer" }), make("p", { class: "dim", text: success.description + " " + Object.keys(success.content || {}).join(", ") }));
    const json = success.content && success.content["application/json"];
    if (json) node.append(...shape(doc, json.schema), pretty(json.example));
    const rows = Object.entries(success.headers || {}).map(([name, one]) => make("tr", {}, make("td", {}, make("code", { text: name })), make("td", {}, ...rich(one.description))));
    if (rows.length) node.append(table(["Header", "Meaning"], rows));
  }
  const refusals = Object.entries(operation.responses).filter(([status]) => !["200", "101", "303"].includes(status));
  const rows = refusals.map(([status, reference]) => make("tr", {}, make("td", {}, make("code", { text: status })), make("td", {}, ...rich(resolve(doc, reference).description))));
  node.append(make("h3", { text: "Refusals" }), table(["Status", "Reason"], rows), make("h3", { text: "Try it" }), curl(doc, path, method, operation));
  if (operation["x-implemented"] && !operation.responses["101"] && !operation.responses["303"]) node.append(attempt(doc, path, method, operation));
  return node;
}

// What a search looks at: the text itself and every schema and header it leads to.
function words(doc, part, seen = new Set()) {
  const text = JSON.stringify(part);
  let all = text;
  for (const [, reference] of text.matchAll(/"\$ref":"([^"]+)"/g)) {
    if (seen.has(reference) || reference.includes("/responses/")) continue;
    seen.add(reference);
    all += words(doc, resolve(doc, { $ref: reference }), seen);
  }
  return all;
}

function opening(node, fill) {
  node.addEventListener("toggle", () => { if (node.open && node.children.length === 1) node.append(fill()); });
  return node;
}

function entry(doc, path, method, operation) {
  const note = operation["x-implemented"] ? make("span", { text: operation.summary, class: "dim" }) : make("span", { text: "not built yet", class: "todo" });
  const summary = make("summary", {}, make("span", { class: "method", text: method.toUpperCase() }), make("code", { text: path }), note);
  const node = opening(make("details", { id: operation.operationId }, summary), () => inside(doc, path, method, operation));
  return { node, built: operation["x-implemented"], words: (method + " " + path + words(doc, operation)).toLowerCase() };
}

function named(doc, name) {
  const schema = doc.components.schemas[name];
  const summary = make("summary", {}, make("code", { text: name }));
  const fill = () => make("div", { class: "inside" }, make("p", {}, ...rich(schema.description)),
    schema.properties ? fields(schema) : make("p", {}, ...kind(schema)));
  return { node: opening(make("details", { id: "schema-" + name }, summary), fill), built: true, words: (name + JSON.stringify(schema)).toLowerCase() };
}

// Every header of a request, those of one provider too.
function headers(doc) {
  const all = Object.values(doc.components.parameters);
  const properties = Object.fromEntries(all.map((one) => [one.name, Object.assign({}, one.schema, { description: one.description, examples: [one.example] })]));
  const node = make("details", { id: "schema-headers" }, make("summary", {}, make("code", { text: "x-gateway-…" }), make("span", { text: "every header of a request", class: "dim" })));
  return { node: opening(node, () => make("div", { class: "inside" }, fields({ properties }))), built: true, words: JSON.stringify(all).toLowerCase() };
}

function account() {
  const input = make("input", { type: "password", autocomplete: "off", spellcheck: "false", id: "key" });
  input.addEventListener("input", () => { key = input.value.trim(); });
  const places = make("p", {}, "Inference is tried at ", make("code", { text: gateway }), ", everything else at ", make("code", { text: location.origin }), ". The key stays in this page.");
  return make("section", { class: "inside" }, make("h2", { text: "Your key" }), field("API key, sent as x-gateway-api-key", input), places);
}

function show(doc) {
  const groups = new Map([["inference", []]]);
  const add = (tag, one) => groups.set(tag, [...(groups.get(tag) || []), one]);
  for (const [path, item] of Object.entries(doc.paths)) {
    for (const [method, operation] of Object.entries(item)) add(operation.tags[0], entry(doc, path, method, operation));
  }
  for (const name of Object.keys(doc.components.schemas)) add("schemas", named(doc, name));
  add("schemas", headers(doc));
  main.replaceChildren(make("p", {}, ...rich(doc.info.description), " Interface " + doc.info.version + ". The config language is ",
    make("a", { href: "#schema-ConfigObject", text: "ConfigObject" }), "."), account());
  const sections = [...groups].map(([tag, entries]) => {
    const section = make("section", {}, make("h2", { text: tag.replaceAll("-", " ") }), ...entries.map((one) => one.node));
    main.append(section);
    return { section, entries };
  });
  const search = document.getElementById("search"), unbuilt = document.getElementById("unbuilt");
  const filter = () => {
    const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let operations = 0, schemas = 0;
    for (const { section, entries } of sections) {
      let any = false;
      for (const one of entries) {
        const fits = wanted.every((word) => one.words.includes(word)) && (one.built || unbuilt.checked);
        one.node.hidden = !fits;
        any = any || fits;
        if (fits) one.node.id.startsWith("schema-") ? schemas++ : operations++;
      }
      section.hidden = !any;
    }
    document.getElementById("count").textContent = operations + " operations, " + schemas + " schemas";
  };
  const visit = () => {
    const wanted = document.getElementById(location.hash.slice(1));
    if (!wanted) return;
    if (wanted.hidden) { search.value = ""; unbuilt.checked = true; filter(); }
    wanted.open = true;
    wanted.scrollIntoView();
  };
  search.addEventListener("input", filter);
  unbuilt.addEventListener("change", filter);
  addEventListener("hashchange", visit);
  filter();
  visit();
}

fetch("v1/openapi.json").then((answer) => answer.json()).then(show).catch((error) => {
  main.replaceChildren(make("p", { class: "todo", text: "The document cannot be read: " + error }));
});
