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
  set: (value) => sessionStorage.setItem("trilens-key", value),
};

async function call(path, body, signal) {
  const headers = body ? { "Content-Type": "application/json" } : {};
  if (key.get()) headers.Authorization = `Bearer ${key.get()}`;
  let response;
  try {
    response = await fetch(BASE + path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), signal });
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
  const path = (name, action) => `/collections/${encodeURIComponent(name)}/${action}`;
  return {
    search: (name, body) => call(path(name, "search"), body, controller.signal),
    explain: (name, body) => call(path(name, "explain"), body, controller.signal),
    disentangle: (name, body) => call(path(name, "disentangle"), body, controller.signal),
    collections: () => call("/collections", undefined, controller.signal),
  };
}
