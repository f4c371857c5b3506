// An OpenAI-style HTTP API over the engine: /v1/chat/completions, /v1/models, /health.
import { createServer } from "node:http";
import { randomUUID } from "node:crypto";
import { QueueFullError } from "./engine.mjs";

const BODY_MAX = 1 << 20;
const ANSWER_TOKENS_MAX = 1024;
const STOPS_MAX = 4;
const SHUTDOWN_MS = 5000;

class ApiError extends Error {
  constructor(status, message, { param = null, code = null } = {}) {
    super(message);
    this.status = status;
    this.body = {
      error: { message, type: status < 500 ? "invalid_request_error" : "server_error", param, code },
    };
  }
}

const bad = (param, message) => new ApiError(400, `${param}: ${message}`, { param });

function sendJson(res, status, body, headers = {}) {
  const text = JSON.stringify(body) + "\n";
  res.writeHead(status, {
    "content-type": "application/json; charset=utf-8",
    "content-length": Buffer.byteLength(text), ...headers,
  });
  res.end(text);
}

async function readJson(req) {
  const parts = [];
  let size = 0;
  for await (const part of req) {
    size += part.length;
    if (size > BODY_MAX)
      throw new ApiError(413, `the request is larger than ${BODY_MAX} bytes`);
    parts.push(part);
  }
  try {
    return JSON.parse(Buffer.concat(parts).toString("utf8"));
  } catch (error) {
    throw new ApiError(400, `the request is not JSON: ${error.message}`, { code: "invalid_json" });
  }
}

function number(body, key, { min, max, integer = false, fallback }) {
  const value = body[key];
  if (value === undefined || value === null)
    return fallback;
  if (typeof value !== "number" || (integer && !Number.isInteger(value)) || value < min || value > max)
    throw bad(key, `expected ${integer ? "a whole number" : "a number"} from ${min} to ${max}`);
  return value;
}

// Text of one message: a string, or an array of { type: "text", text }.
function messageText(message, at) {
  if (typeof message !== "object" || message === null || typeof message.role !== "string")
    throw bad(at, "expected an object with a role");
  if (typeof message.content === "string")
    return message.content;
  if (!Array.isArray(message.content))
    throw bad(`${at}.content`, "expected a string or an array of text parts");
  return message.content.map((part, i) => {
    if (part?.type !== "text" || typeof part.text !== "string")
      throw bad(`${at}.content[${i}]`, "only parts of type text are supported");
    return part.text;
  }).join("");
}

function parseStop(stop) {
  if (stop === undefined || stop === null)
    return [];
  const list = Array.isArray(stop) ? stop : [stop];
  if (list.length > STOPS_MAX || list.some((s) => typeof s !== "string" || s === ""))
    throw bad("stop", `expected a string or at most ${STOPS_MAX} strings`);
  return list;
}

// Check a chat request. The model was trained on plain text, not on conversations, so the prompt is the
// messages' text, one after another, and the answer is how the model goes on.
function parseChat(body, modelId) {
  if (typeof body !== "object" || body === null || Array.isArray(body))
    throw new ApiError(400, "expected a JSON object");
  if (body.model !== undefined && body.model !== modelId)
    throw new ApiError(404, `the model '${body.model}' does not exist; this server has '${modelId}'`,
      { param: "model", code: "model_not_found" });
  if (!Array.isArray(body.messages) || body.messages.length === 0)
    throw bad("messages", "expected a non-empty array");
  if (body.n !== undefined && body.n !== null && body.n !== 1)
    throw bad("n", "only 1 is supported");
  if (body.stream !== undefined && body.stream !== null && typeof body.stream !== "boolean")
    throw bad("stream", "expected true or false");
  const limit = { min: 1, max: ANSWER_TOKENS_MAX, integer: true };
  return {
    prompt: body.messages.map((m, i) => messageText(m, `messages[${i}]`)).join("\n"),
    stream: body.stream === true,
    usageInStream: body.stream_options?.include_usage === true,
    options: {
      maxTokens: number(body, "max_completion_tokens", { ...limit, fallback: undefined }) ??
        number(body, "max_tokens", { ...limit, fallback: 64 }),
      temperature: number(body, "temperature", { min: 0, max: 2, fallback: 0 }),
      topP: number(body, "top_p", { min: 0, max: 1, fallback: undefined }),
      seed: number(body, "seed", { min: 0, max: 0xffffffff, integer: true, fallback: undefined }),
      stop: parseStop(body.stop),
    },
  };
}

function usage(result) {
  return {
    prompt_tokens: result.promptTokens,
    completion_tokens: result.tokens,
    total_tokens: result.promptTokens + result.tokens,
  };
}

// Answers go to the client as they come. Headers are sent with the first piece, so that an error before it
// still has its own status.
class EventStream {
  #res;
  #head;

  constructor(res, head) {
    this.#res = res;
    this.#head = { ...head, object: "chat.completion.chunk" };
  }

  send(choices, extra = {}) {
    if (!this.#res.headersSent)
      this.#res.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
    this.#res.write(`data: ${JSON.stringify({ ...this.#head, choices, ...extra })}\n\n`);
  }

  delta(delta, reason = null) {
    this.send([{ index: 0, delta, logprobs: null, finish_reason: reason }]);
  }

  end() {
    this.#res.end("data: [DONE]\n\n");
  }
}

async function chat(req, res, { engine, modelId }) {
  const request = parseChat(await readJson(req), modelId);
  const head = { id: `chatcmpl-${randomUUID()}`, created: Math.floor(Date.now() / 1000), model: modelId };
  const gone = new AbortController();
  res.on("close", () => gone.abort());
  const options = { ...request.options, signal: gone.signal };
  if (!request.stream) {
    const result = await engine.complete(request.prompt, options);
    return sendJson(res, 200, {
      ...head, object: "chat.completion", usage: usage(result),
      choices: [{
        index: 0, logprobs: null, finish_reason: result.reason,
        message: { role: "assistant", content: result.text },
      }],
    });
  }
  const events = new EventStream(res, head);
  let started = false;
  const start = () => {
    if (!started)
      events.delta({ role: "assistant", content: "" });
    started = true;
  };
  const result = await engine.complete(request.prompt, {
    ...options,
    onText: (content) => { start(); events.delta({ content }); },
  });
  start();
  events.delta({}, result.reason);
  if (request.usageInStream)
    events.send([], { usage: usage(result) });
  events.end();
}

const routes = {
  "/v1/chat/completions": { POST: chat },
  "/v1/models": {
    GET: (req, res, { modelId }) => sendJson(res, 200, {
      object: "list", data: [{ id: modelId, object: "model", created: 0, owned_by: "svrun" }],
    }),
  },
  "/health": { GET: (req, res) => sendJson(res, 200, { status: "ok" }) },
};

async function handle(req, res, state) {
  const path = req.url.split("?", 1)[0];
  const route = routes[path];
  if (!route)
    throw new ApiError(404, `unknown path ${req.method} ${path}`, { code: "not_found" });
  const method = req.method === "HEAD" ? "GET" : req.method;
  if (!route[method])
    throw new ApiError(405, `${path} takes ${Object.keys(route).join(", ")}, not ${req.method}`);
  await route[method](req, res, state);
}

function fail(req, res, error) {
  if (res.destroyed)
    return;
  if (res.headersSent)
    return res.destroy(error);
  if (error instanceof QueueFullError)
    error = new ApiError(429, error.message, { code: "queue_full" });
  if (!(error instanceof ApiError)) {
    process.stderr.write(`error: ${error.stack}\n`);
    error = new ApiError(500, "the model failed; the server's log tells more");
  }
  // What is left of the body is not read: the connection cannot be used again.
  sendJson(res, error.status, error.body, req.complete ? {} : { connection: "close" });
}

// Serve until SIGTERM or SIGINT: no new requests then, and those at work get SHUTDOWN_MS to finish.
export async function serve(engine, { host, port, modelId }) {
  const state = { engine, modelId };
  const server = createServer({ requestTimeout: 30_000, headersTimeout: 10_000 }, (req, res) => {
    handle(req, res, state).catch((error) => fail(req, res, error));
  });
  await new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  const { address, port: bound } = server.address();
  process.stderr.write(`listening on ${address} port ${bound}\n`);
  await new Promise((resolve) => {
    process.once("SIGTERM", resolve);
    process.once("SIGINT", resolve);
  });
  await new Promise((resolve) => {
    server.close(resolve);
    server.closeIdleConnections();
    setTimeout(() => server.closeAllConnections(), SHUTDOWN_MS).unref();
  });
}
