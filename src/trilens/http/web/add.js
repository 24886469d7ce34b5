// Adds documents: dropped, chosen or pasted files, and typed or pasted text.

import { begin, key } from "./api.js";
import { $, el } from "./dom.js";
import { askKey } from "./key.js";

const MEBIBYTE = 1 << 20;

/** Open the dialog. `context` has collection(), largest() in bytes, added() and read(docId). */
export function openAdder(context, text = "") {
  const input = (name, label, placeholder) => el("label", {}, label, el("input", { name, placeholder, maxlength: "500" }));
  const files = el("input", { type: "file", class: "hidden", multiple: true, onchange: () => addFiles([...files.files], context) });
  const form = el(
    "form",
    { id: "add-text" },
    el("h2", { id: "adder-title" }, `Add to ${context.collection()}`),
    el("label", { class: "drop" }, "Drop files here, or ", el("span", { class: "link" }, "choose them"), files),
    el("label", {}, "Text", el("textarea", { name: "text", rows: "6", required: true, placeholder: "Type or paste text" })),
    el("div", { class: "pair" }, input("title", "Title", "optional"), input("id", "Id", "optional")),
    el("label", { class: "check" }, el("input", { type: "checkbox", name: "replace" }), "Replace documents with the same id"),
    el("ul", { id: "added", role: "status", "aria-live": "polite" }),
    el(
      "div",
      { class: "buttons" },
      el("button", { type: "button", class: "quiet", onclick: () => $("adder").close() }, "Close"),
      el("button", { class: "primary" }, "Add text"),
    ),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    addText(form, context);
  });
  $("adder").replaceChildren(form);
  if (!$("adder").open) $("adder").showModal();
  form.elements.text.value = text;
  form.elements.text.focus();
}

/** Files that are dropped or pasted anywhere open the dialog, and so does pasted text outside of a field. */
export function listenForDocuments(mayAdd, context) {
  const open = () => $("adder").open || openAdder(context);
  document.addEventListener("dragover", (event) => {
    if (!mayAdd() || !event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    document.body.classList.add("dragging");
  });
  document.addEventListener("dragleave", (event) => event.relatedTarget ?? document.body.classList.remove("dragging"));
  document.addEventListener("drop", (event) => {
    document.body.classList.remove("dragging");
    if (!mayAdd() || !event.dataTransfer.files.length) return;
    event.preventDefault();
    open();
    addFiles([...event.dataTransfer.files], context);
  });
  document.addEventListener("paste", (event) => {
    const { files } = event.clipboardData;
    if (!mayAdd() || (!files.length && event.target.closest?.("input, textarea, dialog"))) return;
    const text = event.clipboardData.getData("text/plain");
    if (files.length) open();
    else if (text.trim()) openAdder(context, text);
    if (files.length) addFiles([...files], context);
  });
}

async function addFiles(files, context) {
  for (const file of files) {
    if (file.size > context.largest()) {
      report(file.name, `is larger than ${(context.largest() / MEBIBYTE).toFixed(1)} MiB; index it with trilens index`, true);
      continue;
    }
    await add(file.name, context, (service, replace) => service.addFile(context.collection(), file, replace));
  }
}

async function addText(form, context) {
  const { text, title, id } = form.elements;
  const docId = id.value.trim() || `note-${new Date().toISOString().slice(0, 19).replaceAll(":", "-")}`;
  const document = { doc_id: docId, title: title.value.trim(), text: text.value };
  const open = el("button", { type: "button", class: "quiet", onclick: () => ($("adder").close(), context.read(docId)) }, "Open");
  if (await add(docId, context, (service, replace) => service.addText(context.collection(), document, replace), open)) form.reset();
}

/** Send a change and report how it went. A missing or refused key is asked for, and the change sent again. */
async function add(name, context, send, ...more) {
  const item = report(name, "is being added …");
  try {
    const { added, replaced, unchanged, documents } = await send(begin(`add ${name}`), $("add-text").elements.replace.checked);
    const counts = Object.entries({ added, replaced, unchanged }).filter(([, count]) => count);
    report(name, `${counts.map(([what, count]) => `${count.toLocaleString("en")} ${what}`).join(", ")}; ${documents.toLocaleString("en")} documents in all`, false, item, ...more);
    context.added();
    return true;
  } catch (error) {
    const line = report(name, error.message.startsWith(`${name} `) ? error.message.slice(name.length + 1) : error.message, true, item);
    if (error.status !== 401 && !(error.status === 403 && key.get())) return false;
    return new Promise((resolve) => askKey(error, () => (line.remove(), resolve(add(name, context, send, ...more))), () => resolve(false)));
  }
}

/** A line about a file or document; it replaces `old`. */
function report(name, message, failed = false, old = null, ...more) {
  const line = el("li", { class: failed ? "problem" : "" }, el("b", {}, name), ` ${message} `, ...more);
  if (old) old.replaceWith(line);
  else $("added").append(line);
  return line;
}
