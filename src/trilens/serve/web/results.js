// Hits: one fused list with bars of what each lens gave, or a column for each lens.

import { $, el, lensClass, number } from "./dom.js";
import { paint, painted, excerpt } from "./paint.js";

/** One list. `open(hit)` shows why a hit was found. */
export function showList(hits, lenses, open) {
  const most = Math.max(...hits.map((hit) => total(hit)), 1e-9);
  $("results").replaceChildren(el("ol", { class: "hits" }, hits.map((hit) => el("li", {}, card(hit, lenses, most, open)))));
}

/** A column for each lens: [lens, hits] pairs. */
export function showColumns(columns, open) {
  const places = new Map();
  for (const [lens, hits] of columns) for (const hit of hits) places.set(hit.doc_id, [...(places.get(hit.doc_id) ?? []), [lens, hit.rank]]);
  const shown = columns.map(([lens, hits]) =>
    el(
      "section",
      { class: `column ${lensClass(lens)}`, "aria-label": `Lens ${lens}` },
      el("h2", {}, el("span", { class: "dot" }), lens),
      hits.length
        ? el("ol", { class: "hits" }, hits.map((hit) => el("li", {}, small(hit, lens, places.get(hit.doc_id), (one) => open(one, lens)))))
        : el("p", { class: "nothing" }, "Nothing found through this lens."),
    ),
  );
  $("results").replaceChildren(el("div", { class: "columns", style: { "--columns": String(columns.length) } }, shown));
  link();
}

/** Colour the words of the hits that explanations speak of; `key` is the column, or "". */
export function highlight(explanations, key) {
  for (const one of explanations) {
    const card = [...document.querySelectorAll(".hit")].find((node) => node.dataset.doc === one.doc_id && node.dataset.column === key);
    const box = card?.querySelector(".text");
    if (!box) continue;
    const { text, spans } = painted(one);
    if (spans.length) write(box, text, spans, Number(box.dataset.length));
  }
}

/** Mark the card whose panel is open. */
export function select(docId) {
  for (const node of document.querySelectorAll(".hit")) node.classList.toggle("selected", Boolean(docId) && node.dataset.doc === docId);
}

function write(box, text, spans, length) {
  const [start, end] = excerpt(text, spans, length);
  box.replaceChildren(start > 0 ? "… " : "", ...paint(text, spans, start, end), end < text.length ? " …" : "");
}

function textBox(hit, length) {
  const box = el("p", { class: "text", data: { length: String(length) } });
  write(box, hit.text, [], length);
  return box;
}

function head(hit, open) {
  const shown = el("button", { type: "button", class: "title", "aria-haspopup": "true", onclick: () => open(hit) }, hit.title || hit.doc_id);
  return [el("span", { class: "rank", "aria-label": `Rank ${hit.rank}` }, String(hit.rank)), el("h3", {}, shown)];
}

function article(hit, column, open, ...children) {
  const press = (event) => {
    if (event.target.closest("button, a") || getSelection()?.toString()) return;
    open(hit);
  };
  return el("article", { class: "hit", data: { doc: hit.doc_id, column }, onclick: press }, children);
}

function card(hit, lenses, most, open) {
  return article(
    hit,
    "",
    open,
    el("header", {}, head(hit, open), hit.title && hit.title !== hit.doc_id ? el("code", { class: "id" }, hit.doc_id) : null),
    textBox(hit, 340),
    facts(hit),
    contributions(hit, lenses, most),
  );
}

function small(hit, lens, places, open) {
  const others = places.filter(([name]) => name !== lens).map(([name, rank]) => el("span", { class: `tag ${lensClass(name)}` }, el("span", { class: "dot" }), `#${rank} ${name}`));
  const score = el("span", { class: "score", title: `score through ${lens}` }, number(hit.score));
  return article(hit, lens, open, el("header", {}, head(hit, open), score), textBox(hit, 180), others.length ? el("p", { class: "tags" }, others) : null);
}

function facts(hit) {
  const pairs = Object.entries(hit.metadata).slice(0, 6);
  if (!pairs.length) return null;
  const shown = (value) => (typeof value === "object" ? JSON.stringify(value) : String(value));
  return el("p", { class: "tags" }, pairs.map(([name, value]) => el("span", { class: "tag", title: `${name}: ${shown(value)}` }, `${name} `, el("b", {}, shown(value).slice(0, 60)))));
}

const gave = (seen) => Math.max(0, seen.contribution);
const total = (hit) => Object.values(hit.by_lens).reduce((sum, seen) => sum + gave(seen), 0);

/** What each lens gave to the fused score, as one stacked bar that is as long as the score is high. */
function contributions(hit, lenses, most) {
  const seen = lenses.filter((lens) => hit.by_lens[lens]).map((lens) => [lens, hit.by_lens[lens]]);
  const rank = (one) => (one.rank === null ? "not in its list" : `#${one.rank}`);
  const label = seen.map(([lens, one]) => `${lens} ${number(one.contribution)}, score ${number(one.score)}, ${rank(one)}`).join("; ");
  const bars = seen.filter(([, one]) => gave(one)).map(([lens, one]) => el("span", { class: `part ${lensClass(lens)}`, style: { width: `${(100 * gave(one)) / most}%` } }));
  const legend = seen.map(([lens, one]) => el("span", { class: lensClass(lens) }, el("span", { class: "dot" }), `${lens} `, el("b", {}, one.rank === null ? "–" : `#${one.rank}`)));
  return el(
    "footer",
    {},
    el("div", { class: "stack", role: "img", "aria-label": `Score ${number(hit.score)}: ${label}`, title: label }, bars),
    el("p", { class: "legend" }, legend, el("span", { class: "score" }, number(hit.score, 4))),
  );
}

/** In columns, pointing at a document shows where else it stands. */
function link() {
  for (const node of document.querySelectorAll(".columns .hit")) {
    const mark = (on) => {
      for (const other of document.querySelectorAll(".columns .hit")) other.classList.toggle("same", on && other !== node && other.dataset.doc === node.dataset.doc);
    };
    node.addEventListener("mouseenter", () => mark(true));
    node.addEventListener("mouseleave", () => mark(false));
    node.addEventListener("focusin", () => mark(true));
    node.addEventListener("focusout", () => mark(false));
  }
}

/** Placeholders while a search runs. */
export function showWaiting(columns) {
  const ghost = () => el("li", {}, el("div", { class: "hit ghost" }, el("i"), el("i"), el("i")));
  const list = () => el("ol", { class: "hits", "aria-hidden": "true" }, Array.from({ length: 5 }, ghost));
  const shown = columns > 1 ? el("div", { class: "columns", style: { "--columns": String(columns) } }, Array.from({ length: columns }, () => el("section", { class: "column" }, list()))) : list();
  $("results").replaceChildren(shown);
}

export function showMessage(title, text, ...more) {
  $("results").replaceChildren(el("div", { class: "message" }, el("h2", {}, title), el("p", {}, text), ...more));
}
