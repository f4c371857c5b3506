// upscaler: a picture twice, three, four or eight times as large, with details that ESRGAN makes up.
import { readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import * as tf from "@tensorflow/tfjs";
import { setThreadsCount, setWasmPaths } from "@tensorflow/tfjs-backend-wasm";
import { decode, encodePng, InputError } from "./image.mjs";
import { serve } from "./http.mjs";

const USAGE = `usage: upscaler [--scale N] INPUT OUTPUT    a PNG; - is standard input, standard output
       upscaler [--scale N] --serve       answers POST /upscale (a PNG comes back) and GET /health

  --scale N   2 (default), 3, 4 or 8

environment: HOST (0.0.0.0), PORT (8000), UPSCALER_THREADS (1)
`;

// The network sees a tile with this much of its neighbours, so that no seams show.
const TILE = 64, MARGIN = 8;
const modules = new URL("./node_modules/", import.meta.url);

function modelFiles(scale) {
  const folder = new URL(`@upscalerjs/esrgan-slim/models/x${scale}/`, modules);
  const model = JSON.parse(readFileSync(new URL("model.json", folder), "utf8"));
  const parts = model.weightsManifest.flatMap((group) => group.paths)
    .map((path) => readFileSync(new URL(path, folder)));
  const weights = Buffer.concat(parts);
  return tf.io.fromMemory({
    modelTopology: model.modelTopology,
    weightSpecs: model.weightsManifest.flatMap((group) => group.weights),
    weightData: weights.buffer.slice(weights.byteOffset, weights.byteOffset + weights.length),
  });
}

function rgbTensor({ width, height, data }) {
  const rgb = new Float32Array(width * height * 3);
  for (let i = 0, o = 0; i < data.length; i += 4) {
    rgb[o++] = data[i];
    rgb[o++] = data[i + 1];
    rgb[o++] = data[i + 2];
  }
  return tf.tensor3d(rgb, [height, width, 3]);
}

/** Copy a tile's inner part to its place in the larger picture. */
function paste(out, scale, tile, [y0, x0], [top, left], [h, w]) {
  const columns = tile.shape[1], values = tile.dataSync();
  for (let y = 0; y < h * scale; y++)
    for (let x = 0; x < w * scale; x++) {
      const from = ((top * scale + y) * columns + left * scale + x) * 3;
      const to = ((y0 * scale + y) * out.width + x0 * scale + x) * 4;
      for (let c = 0; c < 3; c++)
        out.data[to + c] = Math.max(0, Math.min(255, Math.round(values[from + c])));
      out.data[to + 3] = 255;
    }
}

function upscale(model, scale, picture) {
  const { width, height } = picture;
  if (width * scale * height * scale > 64e6)
    throw new InputError(`${width}x${height} pixels are too many for a scale of ${scale}`);
  const out = { width: width * scale, height: height * scale, data: new Uint8Array(width * height * scale * scale * 4) };
  const source = rgbTensor(picture);
  for (let y = 0; y < height; y += TILE)
    for (let x = 0; x < width; x += TILE) {
      const h = Math.min(TILE, height - y), w = Math.min(TILE, width - x);
      const top = Math.min(MARGIN, y), left = Math.min(MARGIN, x);
      const bottom = Math.min(MARGIN, height - y - h), right = Math.min(MARGIN, width - x - w);
      const tile = tf.tidy(() => model.predict(source
        .slice([y - top, x - left, 0], [top + h + bottom, left + w + right, 3]).expandDims(0)).squeeze([0]));
      paste(out, scale, tile, [y, x], [top, left], [h, w]);
      tile.dispose();
    }
  source.dispose();
  return out;
}

function options() {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: { scale: { type: "string", default: "2" }, serve: { type: "boolean" }, help: { type: "boolean", short: "h" } },
    });
    const scale = Number(values.scale);
    if (values.help || ![2, 3, 4, 8].includes(scale) || positionals.length !== (values.serve ? 0 : 2))
      throw new Error(values.help ? "" : "expected INPUT and OUTPUT, and a scale of 2, 3, 4 or 8");
    return { scale, serve: values.serve, input: positionals[0], output: positionals[1] };
  } catch (error) {
    process.stderr.write(error.message ? `upscaler: ${error.message}\n${USAGE}` : USAGE);
    process.exit(error.message ? 2 : 0);
  }
}

const o = options();
setWasmPaths(new URL("@tensorflow/tfjs-backend-wasm/dist/", modules).pathname);
setThreadsCount(Number(process.env.UPSCALER_THREADS || 1));
await tf.setBackend("wasm").catch(() => false) || await tf.setBackend("cpu");
const model = await tf.loadLayersModel(modelFiles(o.scale));
const run = (bytes) => encodePng(upscale(model, o.scale, decode(bytes)));

if (o.serve) {
  await serve("/upscale", async (bytes) => ({ body: run(bytes), type: "image/png" }));
} else {
  try {
    writeFileSync(o.output === "-" ? 1 : o.output, run(readFileSync(o.input === "-" ? 0 : o.input)));
  } catch (error) {
    if (!(error instanceof InputError) && !error.code)
      throw error;
    process.stderr.write(`upscaler: ${o.input}: ${error.message}\n`);
    process.exitCode = 1;
  }
}
