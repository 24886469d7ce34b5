// What the page shows, kept in the address: it can be shared, and the browser's back and forward work.

export const EMPTY = { collection: "", query: "", lenses: [], view: "fused", filters: [], doc: "", k: 10 };
const OPERATORS = ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$exists"];

export function fromAddress(search) {
  const given = new URLSearchParams(search);
  const k = Number(given.get("k"));
  return {
    collection: given.get("c") ?? "",
    query: given.get("q") ?? "",
    lenses: (given.get("lens") ?? "").split(",").filter(Boolean),
    view: given.get("view") === "side" ? "side" : "fused",
    filters: parseFilters(given.get("filter")),
    doc: given.get("doc") ?? "",
    k: Number.isInteger(k) && k >= 1 && k <= 100 ? k : 10,
  };
}

export function toAddress(state) {
  const said = new URLSearchParams();
  if (state.collection) said.set("c", state.collection);
  if (state.query) said.set("q", state.query);
  if (state.lenses.length) said.set("lens", state.lenses.join(","));
  if (state.view !== "fused") said.set("view", state.view);
  const filters = state.filters.filter((row) => row.field);
  if (filters.length) said.set("filter", JSON.stringify(filters.map((row) => [row.field, row.operator, row.value])));
  if (state.doc) said.set("doc", state.doc);
  if (state.k !== 10) said.set("k", String(state.k));
  const text = said.toString();
  return text ? `?${text}` : "/";
}

function parseFilters(text) {
  try {
    const rows = JSON.parse(text ?? "[]");
    return rows
      .filter((row) => Array.isArray(row) && row.length === 3 && row.every((one) => typeof one === "string") && OPERATORS.includes(row[1]))
      .map(([field, operator, value]) => ({ field, operator, value }));
  } catch {
    return [];
  }
}

/** The filter of the service: every row must hold. Numbers, true, false and null count as such, quotes make text. */
export function toFilter(rows) {
  const conditions = rows.filter((row) => row.field).map((row) => ({ [row.field]: { [row.operator]: operand(row) } }));
  if (!conditions.length) return null;
  return conditions.length === 1 ? conditions[0] : { $and: conditions };
}

function operand({ operator, value }) {
  if (operator === "$exists") return value.trim() !== "false";
  if (operator === "$in") return value.split(",").map((one) => plain(one.trim()));
  return plain(value.trim());
}

function plain(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" && value !== null ? text : value;
  } catch {
    return text;
  }
}
