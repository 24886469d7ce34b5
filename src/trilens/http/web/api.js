// Client of the HTTP API. A new call aborts earlier calls of the same kind.

const BASE = "/api/v1";
const running = new Map();

export class ServiceError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const key = {
  get: () => sessionStorage.getItem("trilens-key"),
  set: (value) => sessionStorage.setItem("trilens-key", value), // empty: none
};

async function call(path, body, signal, method = body ? "POST" : "GET") {
  const headers = key.get() ? { Authorization: `Bearer ${key.get()}` } : {};
  const file = body instanceof Blob;
  if (body) headers["Content-Type"] = file ? "application/octet-stream" : "application/json";
  let response;
  try {
    response = await fetch(BASE + path, { method, headers, body: body && !file ? JSON.stringify(body) : body, signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServiceError(0, "The service cannot be reached. Is it running?");
  }
  const answer = await response.json().catch(() => ({ error: `The service answered with status ${response.status}.` }));
  if (!response.ok) throw new ServiceError(response.status, answer.error);
  return answer;
}

/** Begin calls of a kind ("search", "explain" …). Running calls of that kind fail with an AbortError. */
export function begin(kind) {
  running.get(kind)?.abort();
  const controller = new AbortController();
  running.set(kind, controller);
  const { signal } = controller;
  const path = (name, action) => `/collections/${encodeURIComponent(name)}/${action}`;
  return {
    search: (name, body) => call(path(name, "search"), body, signal),
    explain: (name, body) => call(path(name, "explain"), body, signal),
    disentangle: (name, body) => call(path(name, "disentangle"), body, signal),
    examples: (name) => call(path(name, "examples"), undefined, signal),
    collections: () => call("/collections", undefined, signal),
    ready: () => call("/ready", undefined, signal),
    /** One document, or undefined. The id is a parameter, since in a path browsers would resolve "..". */
    document: async (name, docId) => (await call(path(name, `documents?id=${encodeURIComponent(docId)}`), undefined, signal)).documents[0],
    addText: (name, document, replace) => call(path(name, "documents"), { documents: [document], replace }, signal, "PUT"),
    addFile: (name, file, replace) => call(path(name, `files/${encodeURIComponent(file.name)}?replace=${replace}`), file, signal),
  };
}
