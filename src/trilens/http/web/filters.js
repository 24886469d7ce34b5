// The filter form: rows of field, operator and value that are combined into one metadata filter.

import { $, el } from "./dom.js";

const operators = new Map(); // by name, as the API lists them
const fields = new Set();
let draft = [];

/** Set the operators. The form offers those that take a value, a list or a boolean. */
export function setOperators(listed) {
  for (const operator of listed) if (operator.operand in PARSERS) operators.set(operator.name, operator);
}

/** Suggest the metadata fields of these hits in the form. */
export function suggestFields(hits) {
  for (const hit of hits) for (const field of Object.keys(hit.metadata)) fields.add(field);
  const list = $("fields");
  if (list) list.replaceChildren(...[...fields].sort().map((field) => el("option", { value: field })));
}

/** Show the form; `apply` receives the edited rows. */
export function showFilters(rows, open, apply) {
  const used = rows.filter(usable).length;
  const toggle = $("filter-toggle");
  toggle.textContent = used ? `Filters · ${used}` : "Filters";
  toggle.setAttribute("aria-expanded", String(open));
  toggle.classList.toggle("on", used > 0);
  $("filters").hidden = !open;
  draft = rows.filter(usable).map((row) => ({ ...row }));
  const focused = $("filters").contains(document.activeElement);
  render(apply);
  if (focused) $("filters").querySelector("[type=submit]").focus();
}

const usable = (row) => row.field && operators.has(row.operator);
const emptyRow = () => ({ field: "", operator: operators.keys().next().value, value: "" });

function render(apply) {
  if (!draft.length) draft.push(emptyRow());
  const form = $("filters");
  form.onsubmit = (event) => {
    event.preventDefault();
    apply(draft.map((row) => ({ ...row })));
  };
  form.replaceChildren(el("datalist", { id: "fields" }), ...draft.map((row, index) => line(row, index, apply)), buttons(apply));
  suggestFields([]);
}

function line(row, index, apply) {
  const options = [...operators.values()].map(({ name, label }) => el("option", { value: name, selected: name === row.operator }, label));
  const write = (name) => (event) => (row[name] = event.target.value);
  const remove = () => {
    draft.splice(index, 1);
    apply(draft.map((other) => ({ ...other })));
  };
  return el(
    "div",
    { class: "filter", role: "group", "aria-label": `Filter ${index + 1}` },
    el("input", { "aria-label": "Field", list: "fields", placeholder: "field", value: row.field, oninput: write("field") }),
    el("select", { "aria-label": "Operator", onchange: write("operator") }, options),
    el("input", { "aria-label": "Value", placeholder: "value", value: row.value, oninput: write("value") }),
    el("button", { type: "button", class: "quiet", "aria-label": `Remove filter ${index + 1}`, onclick: remove }, "×"),
  );
}

function buttons(apply) {
  const add = () => {
    draft.push(emptyRow());
    render(apply);
    $("filters").querySelector(".filter:last-of-type input")?.focus();
  };
  return el(
    "div",
    { class: "buttons" },
    el("button", { type: "button", class: "quiet", onclick: add }, "+ Add"),
    el("button", { type: "submit", class: "primary small" }, "Apply"),
  );
}

/** The metadata filter of all rows. Numbers, true, false and null are parsed as JSON; quotes make text of them. */
export function toFilter(rows) {
  const conditions = rows.filter(usable).map((row) => ({ [row.field]: { [row.operator]: operand(row) } }));
  if (!conditions.length) return null;
  return conditions.length === 1 ? conditions[0] : { $and: conditions };
}

const operand = ({ operator, value }) => PARSERS[operators.get(operator).operand](value.trim());

const PARSERS = {
  value: parseValue,
  list: (text) => text.split(",").map((item) => parseValue(item.trim())),
  boolean: (text) => text !== "false",
};

function parseValue(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" && value !== null ? text : value;
  } catch {
    return text;
  }
}
