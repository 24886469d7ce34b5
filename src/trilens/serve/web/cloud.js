// The words that a text activates, the heavier the larger; own words of the text and those that the model adds differ in colour.

import { el, number } from "./dom.js";

export function wordCloud(words) {
  const most = Math.max(...words.map((one) => one.weight), 1e-9);
  const least = Math.min(...words.map((one) => one.weight), most);
  const spread = Math.max(most - least, 1e-9);
  // Heavy words in the middle: alternately before and after what is there.
  const placed = [];
  words.forEach((one, place) => (place % 2 ? placed.push(one) : placed.unshift(one)));
  const shown = placed.map((one) => {
    const size = 0.8 + 1.25 * ((one.weight - least) / spread) ** 0.8;
    const says = `${one.word}: ${number(one.weight)}, ${one.own ? "in the text" : "added by the model"}`;
    return el("li", { class: one.own ? "own" : "added", title: says, "aria-label": says, style: { "font-size": `${size.toFixed(2)}rem` } }, one.word);
  });
  return el("ul", { class: "cloud" }, shown);
}
