// tiny-llama-chat: one prompt on the command line, or a server.
const USAGE = `usage: tiny-llama-chat [options] PROMPT...
       tiny-llama-chat [options] --serve

  --serve            answer HTTP requests: /v1/chat/completions, /v1/models, /health
  --max-tokens N     length of an answer on the command line (default 64)
  --temperature T    0 (default) always takes the likeliest next character
  --seed N           for --temperature above 0

environment: HOST (0.0.0.0), PORT (8000), LLAMA_MODEL, LLAMA_THREADS (1), SVRUN_TIMINGS=1
`;

const started = performance.now();

class UsageError extends Error {}

function parseNumber(name, text, { min, max, integer }) {
  const value = Number(text);
  if (text === "" || !Number.isFinite(value) || (integer && !Number.isInteger(value)) ||
      value < min || value > max)
    throw new UsageError(`${name}: expected ${integer ? "a whole number" : "a number"} from ${min} to ${max}, got '${text}'`);
  return value;
}

async function parseCommandLine(argv) {
  const { parseArgs } = await import("node:util");
  try {
    return parseArgs({
      args: argv, allowPositionals: true, options: {
        serve: { type: "boolean" }, help: { type: "boolean", short: "h" },
        "max-tokens": { type: "string", default: "64" },
        temperature: { type: "string", default: "0" },
        seed: { type: "string" },
      },
    });
  } catch (error) {
    throw new UsageError(error.message);
  }
}

async function answer(engine, words, values) {
  let first = true;
  const prompt = words.join(" ");
  const onText = (text) => {
    if (first && process.env.SVRUN_TIMINGS === "1")
      process.stderr.write(`timing first-token ${Math.round(performance.now() - started)} ms\n`);
    first = false;
    process.stdout.write(text);
  };
  process.stdout.write(prompt);
  await engine.complete(prompt, {
    maxTokens: parseNumber("--max-tokens", values["max-tokens"], { min: 1, max: 1024, integer: true }),
    temperature: parseNumber("--temperature", values.temperature, { min: 0, max: 2 }),
    seed: values.seed === undefined ? undefined
      : parseNumber("--seed", values.seed, { min: 0, max: 0xffffffff, integer: true }),
    onText,
  });
  process.stdout.write("\n");
}

async function main() {
  const { values, positionals } = await parseCommandLine(process.argv.slice(2));
  if (values.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  if (!values.serve && positionals.length === 0)
    throw new UsageError("no prompt given");
  if (values.serve && positionals.length > 0)
    throw new UsageError("--serve takes no prompt");
  const port = parseNumber("PORT", process.env.PORT ?? "8000", { min: 0, max: 65535, integer: true });
  // The first process of a container gets no default action for signals.
  const stop = (number) => () => process.exit(128 + number);
  const onTerm = stop(15), onInt = stop(2);
  process.on("SIGTERM", onTerm).on("SIGINT", onInt);
  const [{ Engine }, { serve }] = await Promise.all([import("./engine.mjs"), import("./server.mjs")]);
  const engine = await Engine.load(process.env.LLAMA_MODEL ?? "/models/tiny-llama/tiny-llama.gguf");
  if (values.serve) {
    process.off("SIGTERM", onTerm).off("SIGINT", onInt);
    await serve(engine, { host: process.env.HOST ?? "0.0.0.0", port, modelId: "tiny-llama" });
  } else {
    await answer(engine, positionals, values);
  }
  await engine.close();
  return 0;
}

try {
  process.exitCode = await main();
} catch (error) {
  const usage = error instanceof UsageError;
  process.stderr.write(`tiny-llama-chat: ${error.message}\n${usage ? `\n${USAGE}` : ""}`);
  process.exit(usage ? 2 : 1);
}
