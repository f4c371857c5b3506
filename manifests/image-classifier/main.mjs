// image-classifier: how likely a picture is a drawing, neutral, or not for everybody.
import { readFileSync } from "node:fs";
import * as tf from "@tensorflow/tfjs";
import { load } from "nsfwjs/core";
import { MobileNetV2Model } from "nsfwjs/models/mobilenet_v2";
import { decode, InputError } from "./image.mjs";
import { serve } from "./http.mjs";

const USAGE = `usage: image-classifier FILE...    one line of JSON for each picture; - is standard input
       image-classifier --serve   answers POST /classify and GET /health

environment: HOST (0.0.0.0), PORT (8000)
`;

function rgbTensor({ width, height, data }) {
  const rgb = new Int32Array(width * height * 3);
  for (let i = 0, o = 0; i < data.length; i += 4) {
    rgb[o++] = data[i];
    rgb[o++] = data[i + 1];
    rgb[o++] = data[i + 2];
  }
  return tf.tensor3d(rgb, [height, width, 3], "int32");
}

async function classify(model, bytes) {
  const picture = rgbTensor(decode(bytes));
  const classes = await model.classify(picture);
  picture.dispose();
  return classes.map(({ className, probability }) =>
    ({ class: className.toLowerCase(), probability: Number(probability.toFixed(4)) }));
}

const args = process.argv.slice(2);
if (args.length === 0 || args[0] === "--help" || (args[0].startsWith("--") && args[0] !== "--serve")) {
  process.stderr.write(USAGE);
  process.exit(args[0] === "--help" ? 0 : 2);
}
// tfjs tells people in a browser's console about its faster cousins.
const log = console.log, warn = console.warn;
console.log = console.warn = console.info = () => {};
await tf.setBackend("cpu");
const model = await load("MobileNetV2", { modelDefinitions: [MobileNetV2Model] });
console.log = log;
console.warn = warn;

if (args[0] === "--serve") {
  await serve("/classify", async (bytes) => ({ body: { classes: await classify(model, bytes) }, type: "application/json" }));
} else {
  for (const name of args) {
    try {
      const classes = await classify(model, readFileSync(name === "-" ? 0 : name));
      console.log(JSON.stringify({ file: name, classes }));
    } catch (error) {
      if (!(error instanceof InputError) && !error.code)
        throw error;
      process.stderr.write(`image-classifier: ${name}: ${error.message}\n`);
      process.exitCode = 1;
    }
  }
}
