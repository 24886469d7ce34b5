// Search results: a fused list with the contribution of each lens, or one column per lens.

import { $, breakable, el, number } from "./dom.js";
import { lensClass } from "./lenses.js";
import { excerpt, paint, toSpans } from "./paint.js";
import { sourceTags } from "./source.js";

const TAGS = 6;

/** Show one list; `actions.explain(hit)` and `actions.read(hit)` open a hit, `more` follows the hits. */
export function showList(hits, lenses, actions, more) {
  const most = Math.max(...hits.map((hit) => total(hit)), 1e-9);
  $("results").replaceChildren(el("ol", { class: "hits" }, hits.map((hit) => el("li", {}, card(hit, lenses, most, actions)))), ...more);
}

/** Show one column per lens, from [lens, hits] pairs. */
export function showColumns(columns, actions, more) {
  const ranks = new Map();
  for (const [lens, hits] of columns) for (const hit of hits) ranks.set(hit.doc_id, [...(ranks.get(hit.doc_id) ?? []), [lens, hit.rank]]);
  const shown = columns.map(([lens, hits]) =>
    el(
      "section",
      { class: `column ${lensClass(lens)}`, "aria-label": `Lens ${lens}` },
      el("h2", {}, el("span", { class: "dot" }), lens),
      hits.length
        ? el("ol", { class: "hits" }, hits.map((hit) => el("li", {}, compactCard(hit, lens, ranks.get(hit.doc_id), actions))))
        : el("p", { class: "nothing" }, "This lens found nothing."),
    ),
  );
  const grid = el("div", { class: "columns", tabindex: "0", role: "region", "aria-label": "Results by lens", style: { "--columns": String(columns.length) } }, shown);
  $("results").replaceChildren(grid, ...more);
  linkCopies();
}

/** Mark the card of the explained document. */
export function select(docId) {
  for (const node of document.querySelectorAll(".hit")) node.classList.toggle("selected", Boolean(docId) && node.dataset.doc === docId);
}

/** The snippet of a hit with its matches, cut to a length; without a snippet, the start of the passage. */
function textBox(hit, length) {
  const { text, matches } = hit.snippet ?? { text: hit.text, matches: [] };
  const spans = toSpans(text, matches);
  const [start, end] = excerpt(text, spans, length);
  const begins = start > 0 || (hit.snippet ?? hit.passage).start > 0;
  const goesOn = end < text.length || (hit.snippet && hit.snippet.end < hit.passage.end);
  return el("p", { class: "text" }, begins ? "… " : "", paint(text, spans, start, end).map(withoutBlankLines), goesOn ? " …" : "");
}

const withoutBlankLines = (node) => (typeof node === "string" ? node.replace(/\s*\n\s*\n\s*/g, "\n") : node);

function head(hit, column, { explain }) {
  const title = hit.title ? paint(hit.title, toSpans(hit.title, hit.snippet?.title_matches ?? [])) : [hit.doc_id];
  const shown = el("button", { type: "button", class: "title", onclick: () => explain(hit, column) }, title.flatMap(breakable));
  return [el("span", { class: "rank", "aria-label": `Rank ${hit.rank}` }, String(hit.rank)), el("h3", {}, shown)];
}

/** The button that opens the whole document, and what is known about it. */
function tags(hit, column, { read }, ...others) {
  return el("p", { class: "tags" }, el("button", { type: "button", class: "tag open", "aria-label": `Open ${hit.title || hit.doc_id}`, onclick: () => read(hit, column) }, "Open"), hit.weak ? el("span", { class: "tag weak", title: "The match is no better than by chance." }, "weak match") : null, ...others);
}

function article(hit, column, { explain }, ...children) {
  const press = (event) => {
    if (event.target.closest("button, a") || getSelection()?.toString()) return;
    explain(hit, column);
  };
  return el("article", { class: hit.weak ? "hit weak" : "hit", data: { doc: hit.doc_id, column }, onclick: press }, children);
}

function card(hit, lenses, most, actions) {
  return article(
    hit,
    "",
    actions,
    el("header", {}, head(hit, "", actions), hit.title && hit.title !== hit.doc_id ? el("code", { class: "id" }, hit.doc_id) : null),
    textBox(hit, 360),
    tags(hit, "", actions, ...sourceTags(hit.metadata, TAGS)),
    contributions(hit, lenses, most),
  );
}

function compactCard(hit, lens, ranks, actions) {
  const others = ranks.filter(([name]) => name !== lens).map(([name, rank]) => el("span", { class: `tag ${lensClass(name)}` }, el("span", { class: "dot" }), `#${rank} ${name}`));
  const score = el("span", { class: "score", title: `score by ${lens}` }, number(hit.score));
  return article(hit, lens, actions, el("header", {}, head(hit, lens, actions), score), textBox(hit, 180), tags(hit, lens, actions, ...others));
}

/** What a lens adds to the bar: in a fusion, by how many standard deviations it scores the document above its other candidates. */
const positive = ({ contribution, standard }) => Math.max(0, standard ?? contribution);
const total = (hit) => Object.values(hit.by_lens).reduce((sum, lensScore) => sum + positive(lensScore), 0);

/** A stacked bar of the contributions of the lenses to the fused score; its length shows the score. */
function contributions(hit, lenses, most) {
  const scores = lenses.filter((lens) => hit.by_lens[lens]).map((lens) => ({ lens, ...hit.by_lens[lens] }));
  const rankText = (rank) => (rank === null ? "not returned" : `#${rank}`);
  const label = scores.map(({ lens, contribution, standard, score, rank }) => `${lens} ${number(contribution)}, score ${number(score)}${standard === null ? "" : `, ${number(standard, 2)} σ`}, ${rankText(rank)}`).join("; ");
  const bars = scores.filter(positive).map((part) => el("span", { class: `part ${lensClass(part.lens)}`, style: { width: `${(100 * positive(part)) / most}%` } }));
  const legend = scores.map(({ lens, rank }) => el("span", { class: lensClass(lens) }, el("span", { class: "dot" }), `${lens} `, el("b", {}, rank === null ? "–" : `#${rank}`)));
  return el(
    "footer",
    {},
    el("div", { class: "stack", role: "img", "aria-label": `Score ${number(hit.score)}: ${label}`, title: label }, bars),
    el("p", { class: "legend" }, legend, el("span", { class: "score" }, number(hit.score, 4))),
  );
}

/** Pointing at a document highlights it in the other columns. */
function linkCopies() {
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
