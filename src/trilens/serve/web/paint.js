// A text whose words are coloured by what they gave to a score.

import { el } from "./dom.js";

/**
 * The passage of an explanation without its title, and its words that gave something to the score, with a strength from 0 to 1.
 * A word has what its pieces have; parts that count against are left out.
 */
export function painted(explanation) {
  const { text: whole, offset } = explanation.passage;
  const unit = units(whole);
  const begin = unit(offset);
  const text = whole.slice(begin);
  const given = new Float64Array(text.length + 1);
  for (const [one, share] of leaves(explanation)) {
    const spans = one.parts.filter((part) => part.score > 0 && part.kind !== "rest").flatMap((part) => part.doc_spans.map((span) => [span, part.score / part.doc_spans.length]));
    const most = Math.max(...spans.map(([, score]) => score), 0);
    for (const [[start, end], score] of spans) {
      const [from, to] = [Math.max(0, unit(start) - begin), unit(end) - begin];
      for (let at = from; at < to; at++) given[at] += (share * score) / most;
    }
  }
  return { text, spans: strongest(text, given) };
}

/** Words with their strength: the strongest has 1, and the weak fade. */
function strongest(text, given) {
  const words = [...text.matchAll(/[\p{L}\p{M}\p{N}_]+/gu)].map(({ index, 0: word }) => ({ start: index, end: index + word.length, strength: Math.max(...given.subarray(index, index + word.length)) }));
  const most = Math.max(...words.map((word) => word.strength), 0);
  return words.map((word) => ({ ...word, strength: (word.strength / most) ** 1.6 })).filter((word) => word.strength > 0.08);
}

/** The service counts characters, JavaScript counts halves of those beyond U+FFFF. */
function units(text) {
  if (!/[\u{10000}-\u{10ffff}]/u.test(text)) return (place) => place;
  const starts = [0];
  for (const character of text) starts.push(starts.at(-1) + character.length);
  return (place) => starts[Math.min(place, starts.length - 1)];
}

/** The explanations of single lenses that see the same passage, each with its share of the score. */
function leaves(explanation) {
  if (!explanation.children?.length) return [[explanation, 1]];
  const share = new Map(explanation.parts.map((part) => [part.label, Math.max(0, part.score)]));
  const most = Math.max(...share.values(), 1e-9);
  return explanation.children
    .filter((child) => samePassage(child, explanation))
    .map((child) => [child, (share.get(child.lens) ?? 0) / most])
    .filter(([, one]) => one > 0);
}

const samePassage = (one, other) => one.passage.start === other.passage.start && one.passage.end === other.passage.end;

/** The text as nodes: what lies in spans is marked, the stronger the more it gave. */
export function paint(text, spans, from = 0, to = text.length) {
  const inside = spans.filter((span) => span.end > from && span.start < to);
  const cuts = new Set([from, to]);
  for (const span of inside) cuts.add(Math.max(from, span.start)).add(Math.min(to, span.end));
  const places = [...cuts].sort((one, other) => one - other);
  const nodes = [];
  for (let at = 0; at + 1 < places.length; at++) {
    const [start, end] = [places[at], places[at + 1]];
    const strength = inside.reduce((sum, span) => (span.start < end && span.end > start ? sum + span.strength : sum), 0);
    const piece = text.slice(start, end);
    nodes.push(strength > 0 ? el("mark", { style: { "--strength": Math.min(1, strength).toFixed(3) } }, piece) : piece);
  }
  return nodes;
}

const SHOWN = 340;

/** Where to begin and end a snippet so that most of what counts is in it. */
export function excerpt(text, spans, length = SHOWN) {
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
