// A plain reference of the service, made from its own description; nothing is fetched from elsewhere.

import { $, el } from "./dom.js";

const description = await (await fetch("/openapi.json")).json();
const schemas = description.components.schemas;

const nameOf = (reference) => reference.split("/").pop();

/** A type in words, with links to the schemas that it uses. */
function typeOf(schema) {
  if (schema.$ref) return [el("a", { href: `#${nameOf(schema.$ref)}` }, nameOf(schema.$ref))];
  if (schema.anyOf) return schema.anyOf.flatMap((one, place) => [...(place ? [" or "] : []), ...typeOf(one)]);
  if (schema.enum) return [schema.enum.map((one) => JSON.stringify(one)).join(" or ")];
  if (schema.const !== undefined) return [JSON.stringify(schema.const)];
  if (schema.type === "array") return ["list of ", ...(schema.items ? typeOf(schema.items) : ["anything"])];
  if (schema.type === "object" && typeof schema.additionalProperties === "object") return ["object of ", ...typeOf(schema.additionalProperties)];
  return [schema.type ?? "anything"];
}

function fields(schema) {
  const needed = schema.required ?? [];
  const rows = Object.entries(schema.properties ?? {}).map(([name, one]) => {
    const standard = one.default === undefined || needed.includes(name) ? null : ` = ${JSON.stringify(one.default)}`;
    return el("tr", {}, el("th", { scope: "row" }, el("code", {}, name)), el("td", {}, typeOf(one), standard), el("td", {}, one.description ?? (needed.includes(name) ? "needed" : "")));
  });
  return el("table", {}, el("tbody", {}, rows));
}

function route(path, method, one) {
  const body = one.requestBody?.content["application/json"]?.schema;
  const answer = Object.values(one.responses["200"]?.content ?? {})[0]?.schema;
  const parameters = (one.parameters ?? []).map((parameter) =>
    el("tr", {}, el("th", { scope: "row" }, el("code", {}, parameter.name)), el("td", {}, typeOf(parameter.schema)), el("td", {}, parameter.description ?? `in the ${parameter.in}`)),
  );
  return el(
    "article",
    { class: "route" },
    el("h3", {}, el("b", { class: `method ${method}` }, method.toUpperCase()), el("code", {}, path)),
    el("p", {}, one.description ?? one.summary),
    parameters.length ? el("table", {}, el("tbody", {}, parameters)) : null,
    body ? el("p", {}, "Takes ", typeOf(body)) : null,
    answer?.$ref ? el("p", {}, "Gives ", typeOf(answer)) : null,
  );
}

const routes = Object.entries(description.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, one]) => route(path, method, one)));
const shapes = Object.entries(schemas).map(([name, schema]) => el("article", { class: "route", id: name }, el("h3", {}, name), el("p", {}, schema.description ?? ""), fields(schema)));
const example = `curl -s ${location.origin}/api/v1/collections/NAME/search -H 'Content-Type: application/json' -d '{"queries": ["a question"], "k": 3}'`;
$("status").remove();
$("reference").append(
  el("h1", {}, "API"),
  el("p", {}, "JSON in, JSON out. Where the service was started with keys, send one as ", el("code", {}, "Authorization: Bearer KEY"), ". Every error has the shape ", el("code", {}, '{"error": "…"}'), "."),
  el("pre", {}, example),
  el("h2", {}, "Addresses"),
  ...routes,
  el("h2", {}, "Shapes"),
  ...shapes,
);
