// The search page. Its state is the URL: user actions change the URL, and the page renders it.

import { listenForDocuments, openAdder } from "./add.js";
import { begin, key } from "./api.js";
import { closeReader, openReader, showDocument, showReaderProblem } from "./document.js";
import { $, el } from "./dom.js";
import { setOperators, showFilters, suggestFields, toFilter } from "./filters.js";
import { askKey, whatIsWrong } from "./key.js";
import { listen } from "./keyboard.js";
import { describe, lensClass, setLenses } from "./lenses.js";
import { hidePanel, showExplanation, showPanel, showProblem } from "./panel.js";
import { select, showColumns, showList, showMessage, showWaiting } from "./results.js";
import { EMPTY, fromUrl, toUrl } from "./state.js";

const MOST_RESULTS = 100;

let state = { ...EMPTY };
let collections = [];
let mayAdd = false;
let largest = 0; // bytes of a request
let found = {}; // the search whose hits are shown, and all hits that were asked for
let hits = new Map(); // by column ("" is the fused list), then by document id
let openedColumn = ""; // the column of the hit that is explained or read
let readId = ""; // the document that is read
let explained = ""; // the explanation that is shown
let shownQuery = ""; // the last query that was written to the search box
let searched = ""; // the request whose results are shown

const collection = () => collections.find(({ name }) => name === state.collection) ?? collections[0];
const selectedLenses = () => {
  const { lenses } = collection();
  const selected = lenses.filter((lens) => state.lenses.includes(lens));
  return selected.length ? selected : lenses;
};
const columns = () => (state.view === "side" ? selectedLenses() : [""]);

/** Change the state and the URL, and render. */
function go(change) {
  state = { ...state, ...change };
  const url = toUrl(state);
  const same = url === (location.search || "/");
  history[same ? "replaceState" : "pushState"](null, "", url);
  show();
}

async function start() {
  state = fromUrl(location.search);
  try {
    const served = await begin("collections").collections();
    collections = served.collections;
    mayAdd = served.writable && (served.may_write || !key.get());
    largest = served.max_body_bytes;
    setLenses(served.lenses);
    setOperators(served.operators);
  } catch (error) {
    return fail(error, start);
  }
  $("collection").replaceChildren(...collections.map(({ name }) => el("option", { value: name }, name)));
  show();
}

function show() {
  if (!collections.length) return undefined; // still loading
  if (state.collection && !collections.some(({ name }) => name === state.collection)) return showUnknown();
  const current = collection();
  document.title = state.query ? `${state.query} · trilens` : "trilens";
  document.body.classList.toggle("home", !state.query);
  if (shownQuery !== state.query) $("query").value = shownQuery = state.query; // keep unsubmitted input
  $("collection").value = current.name;
  $("collection").disabled = collections.length < 2;
  $("controls").hidden = false;
  $("add").hidden = !mayAdd;
  for (const option of document.querySelectorAll("[name=view]")) option.checked = option.value === state.view;
  const focused = document.activeElement?.dataset.lens;
  $("lenses").replaceChildren(...current.lenses.map(chip));
  if (focused) $("lenses").querySelector(`[data-lens="${CSS.escape(focused)}"]`)?.focus();
  showFilters(state.filters, !$("filters").hidden || state.filters.length > 0, (rows) => go({ filters: rows.filter((row) => row.field), doc: "" }));
  read();
  if (!state.query) return welcome(current);
  return search();
}

function chip(lens) {
  const on = selectedLenses().includes(lens);
  const last = on && selectedLenses().length === 1;
  const press = () => {
    if (last) return; // at least one lens must stay selected
    const lenses = on ? selectedLenses().filter((other) => other !== lens) : [...selectedLenses(), lens];
    go({ lenses: lenses.length === collection().lenses.length ? [] : lenses, doc: "" });
  };
  const attributes = { "aria-pressed": String(on), "aria-disabled": last ? "true" : null, title: describe(lens) || lens };
  return el("button", { type: "button", class: `chip ${lensClass(lens)}`, data: { lens }, ...attributes, onclick: press }, el("span", { class: "dot" }), lens);
}

async function welcome({ name, documents, lenses }) {
  begin("search");
  searched = "";
  hidePanel();
  $("status").textContent = "";
  const examples = el("div", { class: "examples", role: "group", "aria-label": "Example queries" });
  const about = lenses.map((lens) => el("li", { class: lensClass(lens) }, el("h3", {}, el("span", { class: "dot" }), lens), el("p", {}, describe(lens))));
  $("results").replaceChildren(
    el(
      "div",
      { class: "welcome" },
      el("h1", {}, "Search through several lenses."),
      el("p", {}, `${documents.toLocaleString("en")} ${documents === 1 ? "document" : "documents"} in `, el("a", { href: "/collections" }, name), ". Every result comes with an explanation of its score."),
      examples,
      el("ul", { class: "about" }, about),
    ),
  );
  const service = begin("examples");
  try {
    const { queries } = await service.examples(name);
    examples.append(...queries.map((query) => el("button", { type: "button", class: "chip", onclick: () => go({ query }) }, query)));
  } catch {
    // the page works without examples
  }
}

/** The options that a search and its explanations share. */
function searchOptions(lenses) {
  return { k: state.k, lenses, filter: toFilter(state.filters) };
}

async function search() {
  const columnsOf = JSON.stringify([collection().name, state.query, selectedLenses(), state.view, state.filters]);
  if (`${columnsOf} ${state.k}` === searched) return openFromUrl();
  searched = `${columnsOf} ${state.k}`;
  const service = begin("search");
  begin("explain");
  if (found.columnsOf !== columnsOf) found = { columnsOf, k: 0, tookMs: 0, lists: columns().map(() => []) };
  const [name, earlier, k] = [collection().name, found, state.k];
  if (earlier.k >= k) return showFound();
  const later = setTimeout(() => {
    $("status").textContent = "Searching …";
    if (!earlier.k) showWaiting(columns().length);
  }, 150);
  const body = (lenses) => ({ queries: [state.query], ...searchOptions(lenses), k: k - earlier.k, offset: earlier.k, details: true });
  try {
    const answers = await Promise.all(columns().map((lens) => service.search(name, body(lens ? [lens] : selectedLenses()))));
    clearTimeout(later);
    const lists = answers.map((answer, index) => [...earlier.lists[index], ...answer.answers[0].hits]);
    found = { columnsOf, k, tookMs: Math.max(...answers.map((answer) => answer.took_ms)), lists };
    showFound(earlier.k);
  } catch (error) {
    clearTimeout(later);
    if (error.name !== "AbortError") fail(error, () => ((searched = ""), show()));
  }
}

const actions = {
  explain: (hit, lens) => {
    openedColumn = lens;
    go({ doc: hit.doc_id });
  },
  read: (hit, lens) => {
    openedColumn = lens;
    go({ open: hit.doc_id });
  },
};

/** Show the first `state.k` hits that were found; `shown` of them were there before. */
function showFound(shown = 0) {
  const lists = found.lists.map((list) => list.slice(0, state.k));
  hits = new Map(columns().map((lens, index) => [lens, new Map(lists[index].map((hit) => [hit.doc_id, hit]))]));
  const all = lists.flat();
  const count = new Set(all.map((hit) => hit.doc_id)).size;
  const weak = count && all.every((hit) => hit.weak) ? el("b", {}, " · only weak matches: perhaps nothing fits the query") : "";
  $("status").replaceChildren(count ? `${count} ${count === 1 ? "document" : "documents"} in ${found.tookMs < 10 ? found.tookMs.toFixed(1) : Math.round(found.tookMs)} ms` : "", weak);
  suggestFields(all);
  if (!count) return showNothing();
  const isMore = state.k < MOST_RESULTS && lists.some((list) => list.length === state.k);
  const more = isMore ? [el("p", { class: "more" }, el("button", { type: "button", class: "chip", onclick: () => go({ k: Math.min(MOST_RESULTS, state.k + EMPTY.k) }) }, "More results"))] : [];
  if (state.view === "side") showColumns(columns().map((lens, index) => [lens, lists[index]]), actions, more);
  else showList(lists[0], selectedLenses(), actions, more);
  if (shown) document.querySelectorAll("#results .hits")[0].querySelectorAll(".title")[shown]?.focus({ preventScroll: true });
  return openFromUrl();
}

/** The URL names a collection that is not served: another one would give other answers. */
function showUnknown() {
  begin("search");
  hidePanel();
  closeReader();
  $("controls").hidden = true;
  $("status").textContent = searched = "";
  const others = collections.map(({ name }) => el("button", { type: "button", class: "chip", onclick: () => go({ collection: name, doc: "", open: "" }) }, name));
  showMessage(`There is no collection ${state.collection}`, "This service has:", el("div", { class: "examples" }, others));
}

function showNothing() {
  hidePanel();
  const clear = el("button", { type: "button", class: "primary", onclick: () => go({ filters: [], doc: "" }) }, "Remove the filters");
  showMessage("Nothing found", state.filters.length ? "No document that passes the filters matches the query." : "No document matches. Try other words or more lenses.", ...(state.filters.length ? [clear] : []));
}

/** Open the panel of the document in the URL, if any. */
async function openFromUrl() {
  select(state.doc);
  const wanted = state.doc && JSON.stringify([found.columnsOf, state.doc, openedColumn]);
  if (wanted && wanted === explained && !$("panel").hidden) return undefined;
  explained = wanted;
  if (!state.doc) return hidePanel();
  const body = showPanel(hitOf(state.doc) ?? { doc_id: state.doc, title: "" }, () => go({ open: state.doc }), close);
  $("panel-title").focus({ preventScroll: true });
  const service = begin("explain");
  const name = collection().name;
  const wordsOf = async () => {
    if (!collection().disentangle) return null;
    return (await service.disentangle(name, { text: state.query, top: 40, whole_words: true })).words;
  };
  try {
    const { explanations } = await service.explain(name, { query: state.query, doc_ids: [state.doc], ...searchOptions(selectedLenses()) });
    showExplanation(body, explanations[0], openedColumn, wordsOf);
  } catch (error) {
    if (error.name !== "AbortError") showProblem(body, error.message);
  }
}

/** A shown hit of a document, preferably that of the column in use. */
const hitOf = (docId) => (hits.get(openedColumn) ?? new Map()).get(docId) ?? [...hits.values()].map((list) => list.get(docId)).find(Boolean);

/** Open the whole document in the URL, if any. */
async function read() {
  if (state.open === readId) return;
  readId = state.open;
  if (!readId) return closeReader();
  const [docId, name, lenses] = [readId, collection().name, openedColumn ? [openedColumn] : selectedLenses()];
  openReader(docId, () => state.open && go({ open: "" }));
  const service = begin("read");
  const explained = state.query ? service.explain(name, { query: state.query, doc_ids: [docId], ...searchOptions(lenses) }).catch(() => null) : null;
  try {
    const document = await service.document(name, docId);
    if (!document) return showReaderProblem(`There is no document ${docId} in ${name}.`);
    const explanation = (await explained)?.explanations[0];
    if (readId === docId) showDocument(document, hitOf(docId)?.passage, explanation);
  } catch (error) {
    if (error.name !== "AbortError") showReaderProblem(error.message);
  }
}

function close() {
  const back = [...document.querySelectorAll(".hit")].find((node) => node.dataset.doc === state.doc);
  go({ doc: "" });
  back?.querySelector(".title").focus();
}

function fail(error, retry) {
  $("status").textContent = "";
  searched = "";
  hidePanel();
  if (error.status === 401) {
    return askKey(error, retry, () => showMessage("API key required", whatIsWrong(error), el("button", { type: "button", class: "primary", onclick: retry }, "Enter a key")));
  }
  const button = el("button", { type: "button", class: "primary", onclick: retry }, "Try again");
  return showMessage(error.status ? "The request failed" : "No answer", error.message, button);
}

$("search").addEventListener("submit", (event) => {
  event.preventDefault();
  searched = ""; // submitting the same query repeats the search
  found = {};
  go({ query: $("query").value.trim(), doc: "", k: EMPTY.k });
});
$("home").addEventListener("click", (event) => {
  event.preventDefault();
  go({ ...EMPTY, collection: state.collection });
  $("query").focus();
});
$("collection").addEventListener("change", (event) => go({ collection: event.target.value, lenses: [], doc: "", open: "", k: EMPTY.k }));
$("filter-toggle").addEventListener("click", () => {
  const open = $("filters").hidden;
  $("filters").hidden = !open;
  $("filter-toggle").setAttribute("aria-expanded", String(open));
  if (open) $("filters").querySelector("input")?.focus();
});
for (const option of document.querySelectorAll("[name=view]")) option.addEventListener("change", () => go({ view: option.value, doc: "" }));
addEventListener("popstate", () => {
  state = fromUrl(location.search);
  show();
});
listen(close);
const adding = { collection: () => collection().name, largest: () => largest, added: () => ((searched = ""), (found = {}), start()), read: (docId) => go({ open: docId }) };
$("add").addEventListener("click", () => openAdder(adding));
listenForDocuments(() => mayAdd && collections.length, adding);
start();
