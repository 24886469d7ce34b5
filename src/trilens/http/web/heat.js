// Token alignment: the similarity of each query token to each document token.

import { el, number } from "./dom.js";

const CELL = 15;
const LABEL = 84;

/** A heat map in the colour of a lens; `matrix` has query_tokens, doc_tokens and values (query tokens × document tokens). */
export function heatMap(matrix, lensClass) {
  const { query_tokens: queryTokens, doc_tokens: docTokens, values } = matrix;
  const canvas = el("canvas", { role: "img", tabindex: "0", "aria-label": describe(matrix) });
  const caption = el("figcaption", {}, "Point at a cell to see its value. The best match of each row is outlined.");
  const width = LABEL + CELL * docTokens.length + 8;
  const height = LABEL + CELL * queryTokens.length + 4;
  const scale = Math.min(devicePixelRatio || 1, 16000 / Math.max(width, height));
  canvas.width = width * scale;
  canvas.height = height * scale;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  canvas.addEventListener("mousemove", (event) => {
    const [column, row] = [Math.floor((event.offsetX - LABEL) / CELL), Math.floor((event.offsetY - LABEL) / CELL)];
    if (row in values && column in values[row]) {
      caption.textContent = `“${queryTokens[row]}” × “${docTokens[column]}” = ${number(values[row][column])}`;
    }
  });
  const draw = () => paintCells(canvas, scale, matrix);
  requestAnimationFrame(draw); // the style sheet applies only to elements in the document
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  return el("figure", { class: `heat ${lensClass}` }, el("div", { class: "scroll" }, canvas), caption);
}

function paintCells(canvas, scale, { query_tokens: queryTokens, doc_tokens: docTokens, values }) {
  const style = getComputedStyle(canvas);
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.font = `11px ${style.fontFamily}`;
  context.textBaseline = "middle";
  const short = (text) => (text.length > 12 ? `${text.slice(0, 11)}…` : text);
  const text = style.color;
  const colour = style.getPropertyValue("--lens").trim();
  const most = Math.max(1e-9, ...values.map((line) => Math.max(...line))); // IDF can raise values above 1
  values.forEach((line, row) => {
    const best = line.indexOf(Math.max(...line));
    const y = LABEL + row * CELL;
    context.fillStyle = text;
    context.globalAlpha = 1;
    context.textAlign = "right";
    context.fillText(short(queryTokens[row]), LABEL - 6, y + CELL / 2);
    context.fillStyle = colour;
    line.forEach((value, column) => {
      context.globalAlpha = Math.max(0.03, value / most) ** 1.6;
      context.fillRect(LABEL + column * CELL, y, CELL - 1, CELL - 1);
    });
    context.globalAlpha = 1;
    context.strokeStyle = text;
    context.lineWidth = 1.5;
    context.strokeRect(LABEL + best * CELL + 0.25, y + 0.25, CELL - 1.5, CELL - 1.5);
  });
  context.fillStyle = text;
  context.textAlign = "left";
  docTokens.forEach((token, column) => {
    context.save();
    context.translate(LABEL + column * CELL + CELL / 2, LABEL - 6);
    context.rotate(-Math.PI / 2);
    context.fillText(short(token), 0, 0);
    context.restore();
  });
}

function describe({ query_tokens: queryTokens, doc_tokens: docTokens, values }) {
  const pairs = values.map((line, row) => `${queryTokens[row]}: ${docTokens[line.indexOf(Math.max(...line))]}`);
  return `Best match of each query token. ${pairs.join(", ")}`;
}
