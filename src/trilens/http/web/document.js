// A whole document over the page, with the matching passage marked and scrolled to.

import { $, breakable, el } from "./dom.js";
import { paint, painted, units } from "./paint.js";
import { sourceTags } from "./source.js";

/** Open the empty dialog; `close` runs when the user closes it. */
export function openReader(docId, close) {
  const dialog = $("reader");
  dialog.replaceChildren(header({ doc_id: docId, title: "", metadata: {} }), el("div", { class: "whole" }, el("p", { class: "ghost" }, el("i"), el("i"), el("i"))));
  dialog.onclose = close;
  dialog.onclick = (event) => event.target === dialog && dialog.close(); // beside the document
  if (!dialog.open) dialog.showModal();
}

export function closeReader() {
  if ($("reader").open) $("reader").close();
}

export function showReaderProblem(message) {
  $("reader").querySelector(".whole").replaceChildren(el("p", { class: "problem", role: "alert" }, message));
}

/** Show a document. `passage` is its best passage, if known; an explanation also marks the words that contribute. */
export function showDocument(document, passage, explanation) {
  const text = el("div", { class: "whole", tabindex: "0", role: "region", "aria-label": "Text of the document" });
  const span = explanation?.passage ?? passage;
  text.append(...(span ? marked(document.text, span, explanation) : [document.text]));
  const found = text.querySelector(".found");
  const jump = found && el("button", { type: "button", class: "tag", onclick: () => found.scrollIntoView({ block: "center" }) }, "To the passage");
  $("reader").replaceChildren(header(document, jump), text);
  text.focus({ preventScroll: true });
  found?.scrollIntoView({ block: "center" });
}

function header(document, jump = null) {
  const tags = [...sourceTags(document.metadata), jump].filter(Boolean);
  return el(
    "header",
    {},
    el("div", {}, el("h2", { id: "reader-title" }, breakable(document.title || document.doc_id)), document.title && document.title !== document.doc_id ? el("code", { class: "id" }, document.doc_id) : null, tags.length ? el("p", { class: "tags" }, tags) : null),
    el("div", { class: "buttons" }, el("button", { type: "button", class: "quiet close", "aria-label": "Close the document", onclick: closeReader }, "×")),
  );
}

/** The text as nodes, with the passage in an element of class "found". */
function marked(text, passage, explanation) {
  const unit = units(text);
  const [start, end] = [unit(passage.start), unit(passage.end)];
  const words = explanation ? painted(explanation) : null;
  const inside = words?.text === text.slice(start, end) ? paint(words.text, words.spans) : [text.slice(start, end)];
  if (start === 0 && end === text.length) return inside;
  const wholeLines = /(^|\n)$/.test(text.slice(0, start)) && /^(\n|$)/.test(text.slice(end));
  return [text.slice(0, start), el("span", { class: wholeLines ? "found lines" : "found" }, inside), wholeLines ? text.slice(end + 1) : text.slice(end)];
}
