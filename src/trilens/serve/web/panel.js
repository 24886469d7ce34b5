// Why a document was found: the parts of its score, its words coloured by them, the alignment, the words of the query.

import { $, el, lensClass, number } from "./dom.js";
import { wordCloud } from "./cloud.js";
import { heatMap } from "./heat.js";
import { paint, painted } from "./paint.js";

const FIRST_PARTS = 12;
const KINDS = {
  own: "in both",
  expanded: "added",
  pair: "match",
  imputed: "imputed",
  token: "word",
  rest: "rest",
  lens: "lens",
};

export function showPanel(hit, close) {
  const body = el("div", { class: "body" }, el("p", { class: "ghost" }, el("i"), el("i"), el("i")));
  const panel = $("panel");
  panel.replaceChildren(
    el(
      "header",
      {},
      el("div", {}, el("h2", { tabindex: "-1", id: "panel-title" }, hit?.title || hit?.doc_id), el("code", { class: "id" }, hit?.doc_id)),
      el("button", { type: "button", class: "quiet close", "aria-label": "Close", onclick: close }, "×"),
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

/** The explanation, with a tab for the whole and one for each lens where there are several; `lens` is the one to begin with. */
export function showExplanation(body, explanation, lens, wordsOf) {
  const views = explanation.children?.length ? [explanation, ...explanation.children] : [explanation];
  const content = el("div", { class: "content", role: "tabpanel", id: "explained" });
  const tabs = views.map((one) =>
    el("button", { type: "button", role: "tab", class: one === explanation && views.length > 1 ? "" : lensClass(one.lens), "aria-controls": "explained", onclick: () => choose(one) },
      one.children?.length ? "all" : one.lens,
    ),
  );
  const choose = (one) => {
    tabs.forEach((tab, place) => {
      tab.setAttribute("aria-selected", String(views[place] === one));
      tab.tabIndex = views[place] === one ? 0 : -1;
    });
    content.className = `content ${one.children?.length ? "" : lensClass(one.lens)}`;
    content.replaceChildren(...sections(one));
  };
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const next = (tabs.indexOf(event.target) + step + tabs.length) % tabs.length;
    choose(views[next]);
    tabs[next].focus();
  };
  const bar = views.length > 1 ? el("div", { class: "tabs", role: "tablist", "aria-label": "Lenses of the explanation", onkeydown: move }, tabs) : null;
  const words = el("section", { class: "words" });
  body.replaceChildren(...[bar, content, words].filter(Boolean));
  choose(views.find((one) => one.lens === lens && !one.children?.length) ?? explanation);
  wordsOf().then((found) => found && words.replaceChildren(el("h3", {}, "What the query means to the model"), wordCloud(found), legend()), () => {});
}

function legend() {
  return el("p", { class: "legend" }, el("span", { class: "own" }, el("span", { class: "dot" }), "in the query"), el("span", { class: "added" }, el("span", { class: "dot" }), "added by the model"));
}

function sections(one) {
  const shown = [
    el("p", { class: "total" }, el("b", {}, number(one.score, 4)), one.children?.length ? " = what each lens gave" : ` through ${one.lens}`, one.approximate ? el("span", { class: "tag" }, "approximate") : null),
    bars(one),
  ];
  const { text, spans } = painted(one);
  if (text.trim()) shown.push(el("h3", {}, "Where it matched"), el("p", { class: "passage" }, paint(text, spans)));
  if (one.matrix) shown.push(el("h3", {}, "Alignment"), heatMap(one.matrix));
  if (one.expansion) shown.push(el("h3", {}, "Expansion of the query"), el("p", { class: "passage" }, JSON.stringify(one.expansion)));
  return shown;
}

function bars(one) {
  const negligible = (part) => part.kind === "rest" && Math.abs(part.score) < 1e-4 * Math.abs(one.score); // rounding
  const parts = one.parts.filter((part) => !negligible(part)).sort((first, second) => Math.abs(second.score) - Math.abs(first.score));
  if (!parts.length) return el("p", { class: "nothing" }, "Query and document share nothing through this lens.");
  const most = Math.abs(parts[0].score) || 1;
  const list = (some) => el("ul", { class: "bars" }, some.map((part) => bar(part, most)));
  if (parts.length <= FIRST_PARTS + 2) return list(parts);
  return el("div", {}, list(parts.slice(0, FIRST_PARTS)), el("details", {}, el("summary", {}, `${parts.length - FIRST_PARTS} more parts`), list(parts.slice(FIRST_PARTS))));
}

/** The numbers that a part was made of, as one line. */
function madeOf({ facts }) {
  return Object.entries(facts).map(([name, value]) => `${name.replaceAll("_", " ")} ${typeof value === "number" ? number(value) : (value ?? "–")}`).join(", ");
}

function bar(part, most) {
  const target = part.target && part.target !== part.label ? [el("span", { class: "arrow", "aria-hidden": "true" }, " → "), part.target] : null;
  const fill = el("span", { class: `fill ${part.score < 0 ? "against" : ""}`, style: { width: `${(100 * Math.abs(part.score)) / most}%` } });
  const kind = part.kind === "lens" || part.kind === "own" || part.kind === "pair" || part.kind === "token" ? null : el("small", {}, KINDS[part.kind] ?? part.kind);
  return el(
    "li",
    { class: part.kind === "lens" ? lensClass(part.label) : `kind-${part.kind}`, title: madeOf(part) },
    el("span", { class: "name" }, el("span", {}, part.label, target), kind),
    el("span", { class: "track" }, fill),
    el("span", { class: "value" }, number(part.score)),
  );
}
