// The dialog that asks for an API key, on every page of the service.

import { key } from "./api.js";
import { el } from "./dom.js";

/** What is wrong, as a sentence, without what a program could do about it. */
export function whatIsWrong({ message }) {
  const [problem] = message.split(";");
  return `${problem[0].toUpperCase()}${problem.slice(1)}.`;
}

/** Ask for a key after a refusal; `retry` runs with the new key, `cancel` if none is entered. */
export function askKey(refusal, retry, cancel) {
  const wrong = Boolean(key.get());
  key.set("");
  const input = el("input", { id: "key", type: "password", autocomplete: "off", required: true, "aria-describedby": "key-problem" });
  const dialog = el(
    "dialog",
    { "aria-labelledby": "key-title" },
    el(
      "form",
      { method: "dialog" },
      el("h2", { id: "key-title" }, wrong ? "The key was refused" : "API key required"),
      el("p", { id: "key-problem", class: wrong ? "problem" : "", role: "alert" }, whatIsWrong(refusal)),
      el("label", {}, "Key ", input),
      el("p", { class: "hint" }, "The key is stored for this tab only and sent with each request."),
      el(
        "div",
        { class: "buttons" },
        el("button", { type: "button", class: "quiet", onclick: () => dialog.close() }, "Cancel"),
        el("button", { class: "primary", value: "ok" }, "Use it"),
      ),
    ),
  );
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (dialog.returnValue !== "ok") return cancel();
    key.set(input.value);
    return retry();
  });
  document.body.append(dialog);
  dialog.showModal();
}
