// A word cloud of the vocabulary terms of a text. Size shows weight; colour separates terms of the text from added ones.

import { el, number } from "./dom.js";

export function wordCloud(words) {
  const most = Math.max(...words.map(({ weight }) => weight), 1e-9);
  const least = Math.min(...words.map(({ weight }) => weight), most);
  const spread = Math.max(most - least, 1e-9);
  // Words alternate between both ends, so that the heaviest are in the middle.
  const ordered = [];
  words.forEach((word, index) => (index % 2 ? ordered.push(word) : ordered.unshift(word)));
  const items = ordered.map(({ word, weight, own }) => {
    const size = 0.8 + 1.25 * ((weight - least) / spread) ** 0.8;
    const label = `${word}: ${number(weight)}, ${own ? "in the text" : "added by the model"}`;
    return el("li", { class: own ? "own" : "added", title: label, "aria-label": label, style: { "font-size": `${size.toFixed(2)}rem` } }, word);
  });
  return el("ul", { class: "cloud" }, items);
}
