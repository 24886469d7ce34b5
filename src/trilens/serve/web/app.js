// The page: what the address says is searched and shown; what the user does changes the address.

import { begin, key } from "./api.js";
import { $, el, lensClass } from "./dom.js";
import { remember, showFilters } from "./filters.js";
import { listen } from "./keyboard.js";
import { hidePanel, showExplanation, showPanel, showProblem } from "./panel.js";
import { highlight, select, showColumns, showList, showMessage, showWaiting } from "./results.js";
import { EMPTY, fromAddress, toAddress, toFilter } from "./state.js";

const ABOUT = {
  bm25: "Exact words, weighed by how rare they are.",
  dense: "The meaning of the whole text as one vector.",
  sparse: "Words that fit, also those that the text does not say.",
  tokens: "The text's own words against what the query means.",
  lexical: "The text's own words, weighed by a model.",
  multi: "Each word of the query against each word of the text.",
  vectors: "Weighted terms that came with the documents.",
};

let state = { ...EMPTY };
let collections = [];
let hits = new Map(); // by column ("" in the fused list), then by document
let opened = ""; // the column whose hit was opened
let shown = ""; // the query in the box, as far as we put it there
let searched = ""; // what the results on the page answer

const collection = () => collections.find((one) => one.name === state.collection) ?? collections[0];
const chosen = () => {
  const known = collection().lenses;
  const wanted = known.filter((lens) => state.lenses.includes(lens));
  return wanted.length ? wanted : known;
};
const columns = () => (state.view === "side" ? chosen() : [""]);

/** Change what is shown, and the address with it. */
function go(change) {
  state = { ...state, ...change };
  const address = toAddress(state);
  const same = address === (location.search || "/");
  history[same ? "replaceState" : "pushState"](null, "", address);
  show();
}

async function start() {
  state = fromAddress(location.search);
  try {
    collections = (await begin("collections").collections()).collections;
  } catch (error) {
    return fail(error, start);
  }
  $("collection").replaceChildren(...collections.map((one) => el("option", { value: one.name }, one.name)));
  show();
}

function show() {
  if (!collections.length) return undefined; // not before we know what there is to search
  const here = collection();
  document.title = state.query ? `${state.query} · trilens` : "trilens";
  document.body.classList.toggle("home", !state.query);
  if (shown !== state.query) $("query").value = shown = state.query; // what is being typed stays
  $("collection").value = here.name;
  $("collection").disabled = collections.length < 2;
  $("controls").hidden = false;
  for (const option of document.querySelectorAll("[name=view]")) option.checked = option.value === state.view;
  const focused = document.activeElement?.dataset.lens;
  $("lenses").replaceChildren(...here.lenses.map(chip));
  if (focused) $("lenses").querySelector(`[data-lens="${CSS.escape(focused)}"]`)?.focus();
  showFilters(state.filters, !$("filters").hidden || state.filters.length > 0, (rows) => go({ filters: rows.filter((row) => row.field), doc: "" }));
  if (!state.query) return welcome(here);
  return search();
}

function chip(lens) {
  const on = chosen().includes(lens);
  const last = on && chosen().length === 1;
  const press = () => {
    if (last) return; // a search needs a lens
    const left = on ? chosen().filter((one) => one !== lens) : [...chosen(), lens];
    go({ lenses: left.length === collection().lenses.length ? [] : left, doc: "" });
  };
  const says = { "aria-pressed": String(on), "aria-disabled": last ? "true" : null, title: ABOUT[lens] ?? lens };
  return el("button", { type: "button", class: `chip ${lensClass(lens)}`, data: { lens }, ...says, onclick: press }, el("span", { class: "dot" }), lens);
}

function welcome(here) {
  begin("search");
  searched = "";
  hidePanel();
  $("status").textContent = "";
  const about = here.lenses.map((lens) => el("li", { class: lensClass(lens) }, el("h3", {}, el("span", { class: "dot" }), lens), el("p", {}, ABOUT[lens] ?? "")));
  $("results").replaceChildren(
    el(
      "div",
      { class: "welcome" },
      el("h1", {}, "Search through several lenses."),
      el("p", {}, `${here.documents.toLocaleString("en")} ${here.documents === 1 ? "document" : "documents"} in ${here.name}. Every result says why it was found.`),
      el("ul", { class: "about" }, about),
    ),
  );
}

/** What a search and its explanations are asked with alike. */
function asSearched(lenses) {
  return { k: state.k, lenses, filter: toFilter(state.filters) };
}

async function search() {
  const asked = JSON.stringify([collection().name, state.query, chosen(), state.view, state.filters, state.k]);
  if (asked === searched) return openFromAddress();
  searched = asked;
  const service = begin("search");
  begin("explain");
  begin("highlight");
  const later = setTimeout(() => {
    $("status").textContent = "Searching …";
    showWaiting(columns().length);
  }, 150);
  const body = (lenses) => ({ queries: [state.query], ...asSearched(lenses) });
  const name = collection().name;
  try {
    const answers = await Promise.all(columns().map((lens) => service.search(name, body(lens ? [lens] : chosen()))));
    clearTimeout(later);
    found(answers);
  } catch (error) {
    clearTimeout(later);
    if (error.name !== "AbortError") fail(error, () => ((searched = ""), show()));
  }
}

function found(answers) {
  const lists = answers.map((answer) => answer.answers[0].hits);
  hits = new Map(columns().map((lens, place) => [lens, new Map(lists[place].map((hit) => [hit.doc_id, hit]))]));
  const count = new Set(lists.flat().map((hit) => hit.doc_id)).size;
  const took = Math.max(...answers.map((answer) => answer.took_ms));
  $("status").textContent = count ? `${count} ${count === 1 ? "document" : "documents"} in ${took < 10 ? took.toFixed(1) : Math.round(took)} ms` : "";
  remember(lists.flat());
  if (!count) {
    hidePanel();
    const clear = el("button", { type: "button", class: "primary", onclick: () => go({ filters: [], doc: "" }) }, "Remove the filters");
    showMessage("Nothing found", state.filters.length ? "No document that passes the filters matches." : "No document matches. Try other words, or more lenses.", ...(state.filters.length ? [clear] : []));
    return;
  }
  const open = (hit, lens = "") => {
    opened = lens;
    go({ doc: hit.doc_id });
  };
  if (state.view === "side") showColumns(columns().map((lens, place) => [lens, lists[place]]), open);
  else showList(lists[0], chosen(), open);
  openFromAddress();
  colour(lists);
}

/** Colour the words of all hits, when there is time. */
async function colour(lists) {
  const service = begin("highlight");
  const name = collection().name;
  for (const [place, lens] of columns().entries()) {
    if (!lists[place].length) continue;
    try {
      const ids = lists[place].map((hit) => hit.doc_id);
      const { explanations } = await service.explain(name, { query: state.query, doc_ids: ids, ...asSearched(lens ? [lens] : chosen()) });
      highlight(explanations, lens);
    } catch {
      return; // without colours the results are as good
    }
  }
}

/** The panel of the document that the address names, if any. */
async function openFromAddress() {
  select(state.doc);
  if (!state.doc) return hidePanel();
  const known = [...hits.values()].map((list) => list.get(state.doc)).find(Boolean);
  const body = showPanel(known ?? { doc_id: state.doc, title: "" }, close);
  $("panel-title").focus({ preventScroll: true });
  const service = begin("explain");
  const name = collection().name;
  const wordsOf = async () => {
    if (!collection().heads.includes("sparse")) return null;
    return (await service.disentangle(name, { text: state.query, top: 40 })).words;
  };
  try {
    const { explanations } = await service.explain(name, { query: state.query, doc_ids: [state.doc], ...asSearched(chosen()) });
    showExplanation(body, explanations[0], opened, wordsOf);
  } catch (error) {
    if (error.name !== "AbortError") showProblem(body, error.message);
  }
}

function close() {
  const back = [...document.querySelectorAll(".hit")].find((node) => node.dataset.doc === state.doc);
  go({ doc: "" });
  back?.querySelector(".title").focus();
}

function fail(error, again) {
  $("status").textContent = "";
  searched = "";
  hidePanel();
  if (error.status === 401) return askKey(again);
  const retry = el("button", { type: "button", class: "primary", onclick: again }, "Try again");
  return showMessage(error.status ? "That did not work" : "No answer", error.message, retry);
}

function askKey(again) {
  const dialog = $("key-dialog");
  dialog.addEventListener("close", () => {
    const given = $("key").value;
    $("key").value = "";
    if (!given) return showMessage("A key is needed", "This service shows its documents only to those who have a key.", el("button", { type: "button", class: "primary", onclick: again }, "Enter a key"));
    key.set(given);
    return again();
  }, { once: true });
  dialog.showModal();
}

$("search").addEventListener("submit", (event) => {
  event.preventDefault();
  searched = ""; // pressing Enter again asks again
  go({ query: $("query").value.trim(), doc: "" });
});
$("home").addEventListener("click", (event) => {
  event.preventDefault();
  go({ ...EMPTY, collection: state.collection });
  $("query").focus();
});
$("collection").addEventListener("change", (event) => go({ collection: event.target.value, lenses: [], doc: "" }));
$("filter-toggle").addEventListener("click", () => {
  const open = $("filters").hidden;
  $("filters").hidden = !open;
  $("filter-toggle").setAttribute("aria-expanded", String(open));
  if (open) $("filters").querySelector("input")?.focus();
});
for (const option of document.querySelectorAll("[name=view]")) option.addEventListener("change", () => go({ view: option.value, doc: "" }));
addEventListener("popstate", () => {
  state = fromAddress(location.search);
  show();
});
listen(close);
start();
