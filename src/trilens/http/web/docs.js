// The API reference, generated from /openapi.json. It loads nothing from other hosts.

import { $, el } from "./dom.js";

const description = await (await fetch("/openapi.json")).json();
const schemas = description.components.schemas;

const nameOf = (reference) => reference.split("/").pop();

/** A JSON schema type as text, with links to referenced schemas. */
function typeOf(schema) {
  if (schema.$ref) return [el("a", { href: `#${nameOf(schema.$ref)}` }, nameOf(schema.$ref))];
  if (schema.anyOf) return schema.anyOf.flatMap((option, index) => [...(index ? [" or "] : []), ...typeOf(option)]);
  if (schema.enum) return [schema.enum.map((value) => JSON.stringify(value)).join(" or ")];
  if (schema.const !== undefined) return [JSON.stringify(schema.const)];
  if (schema.type === "array") return ["list of ", ...(schema.items ? typeOf(schema.items) : ["anything"])];
  if (schema.type === "object" && typeof schema.additionalProperties === "object") return ["object of ", ...typeOf(schema.additionalProperties)];
  return [schema.type ?? "anything"];
}

function fields(schema) {
  const required = schema.required ?? [];
  const rows = Object.entries(schema.properties ?? {}).map(([name, field]) => {
    const fallback = field.default === undefined || required.includes(name) ? null : ` = ${JSON.stringify(field.default)}`;
    return el("tr", {}, el("th", { scope: "row" }, el("code", {}, name)), el("td", {}, typeOf(field), fallback), el("td", {}, field.description ?? (required.includes(name) ? "required" : "")));
  });
  return el("table", {}, el("tbody", {}, rows));
}

function route(path, method, operation) {
  const body = operation.requestBody?.content["application/json"]?.schema;
  const response = Object.values(operation.responses["200"]?.content ?? {})[0]?.schema;
  const parameters = (operation.parameters ?? []).map((parameter) =>
    el("tr", {}, el("th", { scope: "row" }, el("code", {}, parameter.name)), el("td", {}, typeOf(parameter.schema)), el("td", {}, parameter.description ?? `in the ${parameter.in}`)),
  );
  return el(
    "article",
    { class: "route" },
    el("h3", {}, el("b", { class: `method ${method}` }, method.toUpperCase()), el("code", {}, path)),
    el("p", {}, operation.description ?? operation.summary),
    parameters.length ? el("table", {}, el("tbody", {}, parameters)) : null,
    body ? el("p", {}, "Request body: ", typeOf(body)) : null,
    response?.$ref ? el("p", {}, "Response: ", typeOf(response)) : null,
  );
}

const routes = Object.entries(description.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => route(path, method, operation)));
const models = Object.entries(schemas).map(([name, schema]) => el("article", { class: "route", id: name }, el("h3", {}, name), el("p", {}, schema.description ?? ""), fields(schema)));
const example = `curl -s ${location.origin}/api/v1/collections/NAME/search -H 'Content-Type: application/json' -d '{"queries": ["a question"], "k": 3}'`;
$("status").remove();
$("reference").append(
  el("h1", {}, "API"),
  el("p", {}, "Requests and responses are JSON. If the service requires an API key, send it as ", el("code", {}, "Authorization: Bearer KEY"), ". Error responses have the form ", el("code", {}, '{"error": "…"}'), "."),
  el("pre", { tabindex: "0" }, example),
  el("h2", {}, "Routes"),
  ...routes,
  el("h2", {}, "Schemas"),
  ...models,
);
