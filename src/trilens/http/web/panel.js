// The explanation panel: parts of the score, highlighted passage, token alignment, vocabulary terms of the query.

import { $, breakable, el, number } from "./dom.js";
import { wordCloud } from "./cloud.js";
import { heatMap } from "./heat.js";
import { lensClass } from "./lenses.js";
import { paint, painted } from "./paint.js";

const FIRST_PARTS = 12;
const UNLABELLED_KINDS = ["lens", "own", "pair", "token"];
const KIND_LABELS = { expanded: "added" };

export function showPanel(hit, read, close) {
  const body = el("div", { class: "body" }, el("p", { class: "ghost" }, el("i"), el("i"), el("i")));
  const panel = $("panel");
  panel.replaceChildren(
    el(
      "header",
      {},
      el("div", {}, el("h2", { tabindex: "-1", id: "panel-title" }, breakable(hit.title || hit.doc_id)), hit.title && hit.title !== hit.doc_id ? el("code", { class: "id" }, hit.doc_id) : null),
      el(
        "div",
        { class: "buttons" },
        el("button", { type: "button", class: "quiet open", onclick: read }, "Open"),
        el("button", { type: "button", class: "quiet close", "aria-label": "Close", onclick: close }, "×"),
      ),
    ),
    body,
  );
  panel.hidden = false;
  document.body.classList.add("with-panel");
  return body;
}

export function hidePanel() {
  $("panel").hidden = true;
  document.body.classList.remove("with-panel");
}

export function showProblem(body, message) {
  body.replaceChildren(el("div", { class: "message" }, el("p", {}, message)));
}

/** Show an explanation; a fused one has a tab for the fusion and one per lens. `lens` is the tab to open first. */
export function showExplanation(body, explanation, lens, wordsOf) {
  const views = explanation.children?.length ? [explanation, ...explanation.children] : [explanation];
  const content = el("div", { class: "content", role: "tabpanel", id: "explained" });
  const tabs = views.map((view) =>
    el("button", { type: "button", role: "tab", class: view === explanation && views.length > 1 ? "" : lensClass(view.lens), "aria-controls": "explained", onclick: () => select(view) },
      view.children?.length ? "all" : view.lens,
    ),
  );
  const select = (view) => {
    tabs.forEach((tab, index) => {
      tab.setAttribute("aria-selected", String(views[index] === view));
      tab.tabIndex = views[index] === view ? 0 : -1;
    });
    content.className = `content ${view.children?.length ? "" : lensClass(view.lens)}`;
    content.replaceChildren(...sections(view));
  };
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const next = (tabs.indexOf(event.target) + step + tabs.length) % tabs.length;
    select(views[next]);
    tabs[next].focus();
  };
  const bar = views.length > 1 ? el("div", { class: "tabs", role: "tablist", "aria-label": "Lenses of the explanation", onkeydown: move }, tabs) : null;
  const words = el("section", { class: "words" });
  body.replaceChildren(...[bar, content, words].filter(Boolean));
  select(views.find((view) => view.lens === lens && !view.children?.length) ?? explanation);
  wordsOf().then((terms) => terms && words.replaceChildren(el("h3", {}, "Vocabulary terms of the query"), wordCloud(terms), legend()), () => {});
}

function legend() {
  return el("p", { class: "legend" }, el("span", { class: "own" }, el("span", { class: "dot" }), "in the query"), el("span", { class: "added" }, el("span", { class: "dot" }), "added by the model"));
}

function sections(explanation) {
  const shown = [
    el("p", { class: "total" }, el("b", {}, number(explanation.score, 4)), explanation.children?.length ? " = sum over the lenses" : ` by ${explanation.lens}`, explanation.approximate ? el("span", { class: "tag" }, "approximate") : null, explanation.strength !== null && explanation.strength < 1 ? el("span", { class: "tag weak" }, "weak match") : null),
    bars(explanation),
  ];
  const { text, spans } = painted(explanation);
  if (text.trim()) shown.push(el("h3", {}, "Matching passage"), el("p", { class: "passage" }, paint(text, spans)));
  if (explanation.matrix) shown.push(el("h3", {}, "Alignment"), heatMap(explanation.matrix, lensClass(explanation.lens)));
  if (explanation.expansion) shown.push(el("h3", {}, "Query expansion"), el("p", { class: "passage" }, JSON.stringify(explanation.expansion)));
  return shown;
}

function bars(explanation) {
  const negligible = (part) => part.kind === "rest" && Math.abs(part.score) < 1e-4 * Math.abs(explanation.score); // rounding error
  const parts = explanation.parts.filter((part) => !negligible(part)).sort((first, second) => Math.abs(second.score) - Math.abs(first.score));
  if (!parts.length) return el("p", { class: "nothing" }, "The query does not match the document in this lens.");
  const most = Math.abs(parts[0].score) || 1;
  const list = (group) => el("ul", { class: "bars" }, group.map((part) => bar(part, most)));
  if (parts.length <= FIRST_PARTS + 2) return list(parts);
  return el("div", {}, list(parts.slice(0, FIRST_PARTS)), el("details", {}, el("summary", {}, `${parts.length - FIRST_PARTS} more parts`), list(parts.slice(FIRST_PARTS))));
}

/** The factors of a part, on one line. */
function factors({ facts }) {
  return Object.entries(facts).map(([name, value]) => `${name.replaceAll("_", " ")} ${typeof value === "number" ? number(value) : (value ?? "–")}`).join(", ");
}

/** What a lens says of the document in a fusion: its rank, and how many standard deviations above its other candidates it scores it. */
function place({ facts: { rank, standard } }) {
  const deviations = typeof standard === "number" ? ` · ${standard < 0 ? "−" : "+"}${Math.abs(standard).toFixed(1)} σ` : "";
  return `${rank ? `#${rank}` : "not returned"}${deviations}`;
}

function bar(part, most) {
  const target = part.target && part.target !== part.label ? [el("span", { class: "arrow", "aria-hidden": "true" }, " → "), part.target] : null;
  const fill = el("span", { class: `fill ${part.score < 0 ? "against" : ""}`, style: { width: `${(100 * Math.abs(part.score)) / most}%` } });
  const label = part.kind === "lens" ? place(part) : UNLABELLED_KINDS.includes(part.kind) ? "" : (KIND_LABELS[part.kind] ?? part.kind);
  return el(
    "li",
    { class: part.kind === "lens" ? lensClass(part.label) : `kind-${part.kind}`, title: factors(part) },
    el("span", { class: "name" }, el("span", {}, part.label, target), label ? el("small", {}, label) : null),
    el("span", { class: "track" }, fill),
    el("span", { class: "value" }, number(part.score)),
  );
}
