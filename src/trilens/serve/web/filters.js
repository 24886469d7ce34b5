// Rows of field, operator and value that become one filter.

import { $, el } from "./dom.js";

const NAMES = {
  $eq: "is",
  $ne: "is not",
  $gt: "above",
  $gte: "at least",
  $lt: "below",
  $lte: "at most",
  $in: "is one of",
  $exists: "is there",
};
const known = new Set();
let draft = [];

/** Fields of documents that were seen, to be suggested. */
export function remember(hits) {
  for (const hit of hits) for (const field of Object.keys(hit.metadata)) known.add(field);
  const list = $("fields");
  if (list) list.replaceChildren(...[...known].sort().map((field) => el("option", { value: field })));
}

/** Show rows to be edited; `apply` is given them when they are to count. */
export function showFilters(rows, open, apply) {
  const used = rows.filter((row) => row.field).length;
  const toggle = $("filter-toggle");
  toggle.textContent = used ? `Filters · ${used}` : "Filters";
  toggle.setAttribute("aria-expanded", String(open));
  toggle.classList.toggle("on", used > 0);
  $("filters").hidden = !open;
  draft = rows.map((row) => ({ ...row }));
  const focused = $("filters").contains(document.activeElement);
  render(apply);
  if (focused) $("filters").querySelector("[type=submit]").focus();
}

function render(apply) {
  if (!draft.length) draft.push({ field: "", operator: "$eq", value: "" });
  const form = $("filters");
  form.onsubmit = (event) => {
    event.preventDefault();
    apply(draft.map((row) => ({ ...row })));
  };
  form.replaceChildren(el("datalist", { id: "fields" }), ...draft.map((row, place) => line(row, place, apply)), buttons(apply));
  remember([]);
}

function line(row, place, apply) {
  const options = Object.entries(NAMES).map(([operator, name]) => el("option", { value: operator, selected: operator === row.operator }, name));
  const write = (name) => (event) => (row[name] = event.target.value);
  const remove = () => {
    draft.splice(place, 1);
    apply(draft.map((one) => ({ ...one })));
  };
  return el(
    "div",
    { class: "filter", role: "group", "aria-label": `Filter ${place + 1}` },
    el("input", { "aria-label": "Field", list: "fields", placeholder: "field", value: row.field, oninput: write("field") }),
    el("select", { "aria-label": "Operator", onchange: write("operator") }, options),
    el("input", { "aria-label": "Value", placeholder: "value", value: row.value, oninput: write("value") }),
    el("button", { type: "button", class: "quiet", "aria-label": `Remove filter ${place + 1}`, onclick: remove }, "×"),
  );
}

function buttons(apply) {
  const add = () => {
    draft.push({ field: "", operator: "$eq", value: "" });
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
