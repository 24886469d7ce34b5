// Keyboard shortcuts: / focuses the search box, arrows move through hits and columns, Enter explains a hit, o opens its document,
// Esc closes the panel.

import { $ } from "./dom.js";

export function listen(closePanel) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const typing = event.target.matches("input, select, textarea");
    if (event.key === "/" && !typing) {
      event.preventDefault();
      $("query").focus();
      $("query").select();
    } else if (event.key === "o" && !typing) {
      event.target.closest(".hit, #panel")?.querySelector(".open").click();
    } else if (event.key === "Escape" && !$("panel").hidden) {
      event.preventDefault();
      closePanel();
    } else if (event.key.startsWith("Arrow") && (!typing || (event.target === $("query") && event.key === "ArrowDown"))) {
      if (!event.target.closest("[role=tablist], #panel, #views") && move(event.key)) event.preventDefault();
    }
  });
}

function move(key) {
  const columns = [...document.querySelectorAll("#results .hits")].map((list) => [...list.querySelectorAll(".title")]).filter((list) => list.length);
  if (!columns.length) return false;
  const column = columns.findIndex((list) => list.includes(document.activeElement));
  if (column < 0) {
    if (key === "ArrowDown") columns[0][0].focus();
    return key === "ArrowDown";
  }
  const row = columns[column].indexOf(document.activeElement);
  if (key === "ArrowUp" && row === 0) {
    $("query").focus();
    return true;
  }
  const across = columns[column + { ArrowRight: 1, ArrowLeft: -1 }[key]];
  const next = { ArrowDown: columns[column][row + 1], ArrowUp: columns[column][row - 1] }[key] ?? across?.[Math.min(row, across.length - 1)];
  next?.focus();
  return Boolean(next);
}
