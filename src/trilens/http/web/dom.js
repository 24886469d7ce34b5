// DOM helpers. No HTML is ever parsed from strings, so documents cannot inject markup.

export const $ = (id) => document.getElementById(id);

/** Create an element; children are elements or text. */
export function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") node.className = value;
    else if (name === "style") for (const [key, setting] of Object.entries(value)) node.style.setProperty(key, setting);
    else if (name === "data") Object.assign(node.dataset, value);
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** Lets long names break where a reader would break them; other nodes stay as they are. */
export function breakable(node) {
  return typeof node === "string" ? node.split(/(?<=[._/(,=:-])/).flatMap((part, index) => (index ? [el("wbr"), part] : [part])) : [node];
}

/** Format a number with `digits` significant digits. */
export function number(value, digits = 3) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString("en");
  return size < 0.0001 ? value.toExponential(1) : value.toPrecision(digits);
}
