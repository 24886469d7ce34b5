// Elements are made here and nowhere from strings of HTML: text of documents only ever becomes text.

export const $ = (id) => document.getElementById(id);

/** An element with properties, and children that are elements or text. */
export function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") node.className = value;
    else if (name === "style") for (const [key, one] of Object.entries(value)) node.style.setProperty(key, one);
    else if (name === "data") Object.assign(node.dataset, value);
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** A number as people read it, with so many digits that count. */
export function number(value, digits = 3) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString("en");
  return size < 0.0001 ? value.toExponential(1) : value.toPrecision(digits);
}

const COLOURED = ["bm25", "dense", "sparse", "tokens", "lexical", "multi", "vectors"];

/** The class that gives an element the colour of a lens. */
export const lensClass = (lens) => `lens-${COLOURED.includes(lens) ? lens : "vectors"}`;
