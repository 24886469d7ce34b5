// The state of the page, stored in the URL, so that it can be shared and the browser's history works.

export const EMPTY = { collection: "", query: "", lenses: [], view: "fused", filters: [], doc: "", open: "", k: 10 };

export function fromUrl(search) {
  const parameters = new URLSearchParams(search);
  const k = Number(parameters.get("k"));
  return {
    collection: parameters.get("c") ?? "",
    query: parameters.get("q") ?? "",
    lenses: (parameters.get("lens") ?? "").split(",").filter(Boolean),
    view: parameters.get("view") === "side" ? "side" : "fused",
    filters: parseFilters(parameters.get("filter")),
    doc: parameters.get("doc") ?? "",
    open: parameters.get("open") ?? "",
    k: Number.isInteger(k) && k >= 1 && k <= 100 ? k : 10,
  };
}

export function toUrl(state) {
  const parameters = new URLSearchParams();
  if (state.collection) parameters.set("c", state.collection);
  if (state.query) parameters.set("q", state.query);
  if (state.lenses.length) parameters.set("lens", state.lenses.join(","));
  if (state.view !== "fused") parameters.set("view", state.view);
  const filters = state.filters.filter((row) => row.field);
  if (filters.length) parameters.set("filter", JSON.stringify(filters.map((row) => [row.field, row.operator, row.value])));
  if (state.doc) parameters.set("doc", state.doc);
  if (state.open) parameters.set("open", state.open);
  if (state.k !== 10) parameters.set("k", String(state.k));
  const text = parameters.toString();
  return text ? `?${text}` : "/";
}

function parseFilters(text) {
  try {
    const rows = JSON.parse(text ?? "[]");
    return rows
      .filter((row) => Array.isArray(row) && row.length === 3 && row.every((part) => typeof part === "string"))
      .map(([field, operator, value]) => ({ field, operator, value }));
  } catch {
    return [];
  }
}
