// Highlights the words of a passage by their contribution to a score.

import { el } from "./dom.js";

/**
 * The passage of an explanation without its title, and the spans of the words that contribute to the score, with a strength
 * from 0 to 1. A word is as strong as its strongest character. Negative parts are ignored.
 */
export function painted(explanation) {
  const { text: whole, offset } = explanation.passage;
  const unit = units(whole);
  const begin = unit(offset);
  const text = whole.slice(begin);
  const strengths = new Float64Array(text.length + 1);
  for (const [leaf, share] of leaves(explanation)) {
    const spans = leaf.parts.filter((part) => part.score > 0 && part.kind !== "rest").flatMap((part) => part.doc_spans.map((span) => [span, part.score / part.doc_spans.length]));
    const most = Math.max(...spans.map(([, score]) => score), 0);
    for (const [[start, end], score] of spans) {
      const [from, to] = [Math.max(0, unit(start) - begin), unit(end) - begin];
      for (let index = from; index < to; index++) strengths[index] += (share * score) / most;
    }
  }
  return { text, spans: strongest(text, strengths) };
}

/** The words with their strength, scaled so that the strongest has 1; the weakest are dropped. */
function strongest(text, strengths) {
  const words = [...text.matchAll(/[\p{L}\p{M}\p{N}_]+/gu)].map(({ index, 0: word }) => ({ start: index, end: index + word.length, strength: Math.max(...strengths.subarray(index, index + word.length)) }));
  const most = Math.max(...words.map((word) => word.strength), 0);
  return words.map((word) => ({ ...word, strength: (word.strength / most) ** 1.6 })).filter((word) => word.strength > 0.08);
}

/** Maps offsets of the API, in code points, to offsets in UTF-16 code units. */
export function units(text) {
  if (!/[\u{10000}-\u{10ffff}]/u.test(text)) return (offset) => offset;
  const starts = [0];
  for (const character of text) starts.push(starts.at(-1) + character.length);
  return (offset) => starts[Math.min(offset, starts.length - 1)];
}

/** Spans of the API, in code points, as spans of medium strength. */
export function toSpans(text, spans) {
  const unit = units(text);
  return spans.map(([start, end]) => ({ start: unit(start), end: unit(end), strength: 0.5 }));
}

/** The explanations of the single lenses that matched the same passage, each with its share of the score. */
function leaves(explanation) {
  if (!explanation.children?.length) return [[explanation, 1]];
  const share = new Map(explanation.parts.map((part) => [part.label, Math.max(0, part.score)]));
  const most = Math.max(...share.values(), 1e-9);
  return explanation.children
    .filter((child) => samePassage(child, explanation))
    .map((child) => [child, (share.get(child.lens) ?? 0) / most])
    .filter(([, weight]) => weight > 0);
}

const samePassage = (first, second) => first.passage.start === second.passage.start && first.passage.end === second.passage.end;

/** The text as DOM nodes; spans become <mark> elements with their strength. */
export function paint(text, spans, from = 0, to = text.length) {
  const inside = spans.filter((span) => span.end > from && span.start < to);
  const cuts = new Set([from, to]);
  for (const span of inside) cuts.add(Math.max(from, span.start)).add(Math.min(to, span.end));
  const offsets = [...cuts].sort((first, second) => first - second);
  const nodes = [];
  for (let index = 0; index + 1 < offsets.length; index++) {
    const [start, end] = [offsets[index], offsets[index + 1]];
    const strength = inside.reduce((sum, span) => (span.start < end && span.end > start ? sum + span.strength : sum), 0);
    const piece = text.slice(start, end);
    nodes.push(strength > 0 ? el("mark", { style: { "--strength": Math.min(1, strength).toFixed(3) } }, piece) : piece);
  }
  return nodes;
}

/** The start and end of the snippet that covers the most highlighted strength. */
export function excerpt(text, spans, length) {
  if (text.length <= length) return [0, text.length];
  let [best, most] = [0, -1];
  for (const start of [0, ...spans.map((span) => Math.max(0, Math.min(span.start - 60, text.length - length)))]) {
    const inside = spans.reduce((sum, span) => (span.start >= start && span.end <= start + length ? sum + span.strength : sum), 0);
    if (inside > most + 1e-9) [best, most] = [start, inside];
  }
  const begin = best === 0 ? 0 : text.indexOf(" ", best) + 1 || best;
  const space = text.lastIndexOf(" ", begin + length);
  return [begin, begin + length >= text.length ? text.length : space > begin ? space : begin + length];
}
