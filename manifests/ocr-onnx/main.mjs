// ocr-onnx: the text in pictures.
import { readFileSync } from "node:fs";
import { decode, InputError } from "./image.mjs";
import { serve } from "./http.mjs";
import { open, recognise } from "./ocr.mjs";

const USAGE = `usage: ocr-onnx [--json] FILE...    the lines of text in each picture; - is standard input
       ocr-onnx --serve             answers POST /ocr and GET /health

environment: HOST (0.0.0.0), PORT (8000), OCR_THREADS (1)
`;

const args = process.argv.slice(2);
const json = args[0] === "--json" && args.shift() !== undefined;
if (args.length === 0 || args[0] === "--help" || (args[0].startsWith("--") && args[0] !== "--serve")) {
  process.stderr.write(USAGE);
  process.exit(args[0] === "--help" ? 0 : 2);
}
const ocr = await open(Number(process.env.OCR_THREADS || 1));

if (args[0] === "--serve") {
  await serve("/ocr", async (bytes) => ({ body: { lines: await recognise(ocr, decode(bytes)) }, type: "application/json" }));
} else {
  for (const name of args) {
    try {
      const lines = await recognise(ocr, decode(readFileSync(name === "-" ? 0 : name)));
      console.log(json ? JSON.stringify({ file: name, lines }) : lines.map((line) => line.text).join("\n"));
    } catch (error) {
      if (!(error instanceof InputError) && !error.code)
        throw error;
      process.stderr.write(`ocr-onnx: ${name}: ${error.message}\n`);
      process.exitCode = 1;
    }
  }
}
