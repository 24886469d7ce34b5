// The served collections with their figures and whether they can be searched.

import { begin } from "./api.js";
import { $, el } from "./dom.js";
import { askKey } from "./key.js";
import { describe, lensClass, setLenses } from "./lenses.js";

const UNITS = ["bytes", "kB", "MB", "GB", "TB"];

async function start() {
  try {
    const served = await begin("collections").collections();
    const state = await begin("ready").ready().then(() => "ready", (error) => error.message);
    setLenses(served.lenses);
    $("status").textContent = [`trilens ${served.version}`, state, served.writable ? "documents can be changed with a write key" : "read-only"].join(" · ");
    $("collections").replaceChildren(...served.collections.map(card));
  } catch (error) {
    $("status").textContent = error.message;
    if (error.status === 401) askKey(error, start, () => {});
  }
}

function card(facts) {
  const { name, documents, passages, bytes, lenses, model, commit, committed, problem } = facts;
  const figures = {
    Documents: documents.toLocaleString("en"),
    Passages: passages.toLocaleString("en"),
    "On disk": size(bytes),
    Commits: commit.toLocaleString("en"),
    "Last commit": committed ? el("time", { datetime: committed }, new Date(committed).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" })) : "unknown",
    Model: model ?? "none",
  };
  return el(
    "article",
    { class: "route collection" },
    el("h2", {}, el("a", { href: `/?c=${encodeURIComponent(name)}` }, name), el("span", { class: `health ${problem ? "problem" : ""}` }, problem ? "cannot be searched" : "can be searched")),
    problem ? el("p", { class: "problem" }, problem) : null,
    el("dl", { class: "figures" }, Object.entries(figures).map(([label, value]) => el("div", {}, el("dt", {}, label), el("dd", {}, value)))),
    el("p", { class: "tags" }, lenses.map((lens) => el("span", { class: `tag ${lensClass(lens)}`, title: describe(lens) }, el("span", { class: "dot" }), lens))),
  );
}

function size(bytes) {
  const step = Math.min(UNITS.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  return `${(bytes / 1000 ** step).toLocaleString("en", { maximumSignificantDigits: 3 })} ${UNITS[step]}`;
}

start();
