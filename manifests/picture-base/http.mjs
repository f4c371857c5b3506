// A server with one thing to do: POST a picture, get an answer; GET /health.
import { createServer } from "node:http";
import { InputError, MAX_BYTES } from "./image.mjs";

function send(response, status, body, type = "application/json") {
  response.writeHead(status, { "content-type": type });
  response.end(type === "application/json" ? `${JSON.stringify(body)}\n` : body);
}

async function read(request) {
  const parts = [];
  let size = 0;
  for await (const part of request) {
    size += part.length;
    if (size > MAX_BYTES)
      throw new InputError(`a picture larger than ${MAX_BYTES} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts);
}

/** answer(bytes) -> {body, type}. Resolves when the server has been told to stop. */
export function serve(path, answer) {
  const server = createServer(async (request, response) => {
    if (request.method === "GET" && request.url === "/health")
      return send(response, 200, { status: "ok" });
    if (request.url !== path)
      return send(response, 404, { error: `unknown; there is POST ${path} and GET /health` });
    if (request.method !== "POST")
      return send(response, 405, { error: "expected POST with a PNG or JPEG picture" });
    try {
      const { body, type } = await answer(await read(request));
      send(response, 200, body, type);
    } catch (error) {
      send(response, error instanceof InputError ? 400 : 500, { error: error.message });
    }
  });
  for (const signal of ["SIGTERM", "SIGINT"])
    process.on(signal, () => { server.close(); server.closeAllConnections(); });
  server.listen(Number(process.env.PORT || 8000), process.env.HOST || "0.0.0.0");
  return new Promise((resolve, reject) => { server.on("close", resolve); server.on("error", reject); });
}
