// Where a document comes from: the address, path and page in its metadata.

import { el } from "./dom.js";

const FIELDS = ["url", "source", "path"];
const SHOWN = 60;

/** A link to the source, the page, and up to `most` other metadata as tags. */
export function sourceTags(metadata, most = Infinity) {
  const field = FIELDS.find((name) => isWebAddress(metadata[name]));
  const page = metadata.page === undefined ? null : el("span", { class: "tag" }, "page ", el("b", {}, text(metadata.page)));
  const others = Object.entries(metadata).filter(([name]) => name !== "page" && name !== field);
  const tags = others.slice(0, most).map(([name, value]) => el("span", { class: "tag", title: `${name}: ${text(value)}` }, `${name} `, el("b", {}, text(value).slice(0, SHOWN))));
  return [field ? link(metadata[field], metadata.page) : null, page, ...tags].filter(Boolean);
}

/** Only these addresses become links: others, such as javascript: and file:, could run code or lead nowhere. */
function isWebAddress(value) {
  return typeof value === "string" && URL.canParse(value) && ["http:", "https:"].includes(new URL(value).protocol);
}

function link(address, page) {
  const url = new URL(address);
  if (!url.hash && Number.isInteger(page)) url.hash = `page=${page}`; // PDF viewers turn to it
  const label = url.host + (url.pathname === "/" ? "" : url.pathname);
  return el("a", { class: "tag", href: url.href, target: "_blank", rel: "noopener noreferrer", title: url.href }, label.length > SHOWN ? `…${label.slice(-SHOWN)}` : label, " ↗");
}

const text = (value) => (typeof value === "object" ? JSON.stringify(value) : String(value));
