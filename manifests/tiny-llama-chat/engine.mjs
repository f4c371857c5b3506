// The model: loads a GGUF file and completes text, one request at a time.
import { getLlama, LlamaCompletion, LlamaLogLevel } from "node-llama-cpp";

// Tokens of the context that a prompt may not take, so that an answer always fits behind it.
const ANSWER_TOKENS_MIN = 32;

export class QueueFullError extends Error {}

// One thread for each CPU of the cgroup, never the host's count: llama.cpp's threads spin at barriers,
// and with more threads than CPUs the same answer takes a thousand times as long.
function threadCount(text) {
  const threads = Number(text || "1");
  if (!Number.isInteger(threads) || threads < 1 || threads > 1024)
    throw new RangeError(`LLAMA_THREADS: expected a whole number from 1 to 1024, got '${text}'`);
  return threads;
}

export class Engine {
  #llama;
  #context;
  #model;
  #completion;
  #tail = Promise.resolve();
  #waiting = 0;
  #queueMax;

  static async load(path, { threads = process.env.LLAMA_THREADS, queueMax = 16 } = {}) {
    const engine = new Engine();
    const count = threadCount(threads);
    // build and skipDownload: the image holds the binary, nothing is compiled or fetched at run time.
    engine.#llama = await getLlama({
      gpu: false, build: "never", skipDownload: true, progressLogs: false,
      logLevel: LlamaLogLevel.error, maxThreads: count,
      logger: (level, message) => process.stderr.write(`llama: ${level}: ${message.trim()}\n`),
    });
    engine.#model = await engine.#llama.loadModel({ modelPath: path, useMmap: true });
    engine.#context = await engine.#model.createContext({
      contextSize: engine.#model.trainContextSize, sequences: 1, threads: count,
    });
    engine.#completion = new LlamaCompletion({ contextSequence: engine.#context.getSequence() });
    engine.#queueMax = queueMax;
    return engine;
  }

  get contextSize() {
    return this.#context.contextSize;
  }

  // The last tokens of text that leave room for an answer: a prompt of any length works.
  #clip(text) {
    const max = Math.max(1, this.contextSize - ANSWER_TOKENS_MIN);
    // Only the tail is looked at, so that a long text costs nothing.
    const tokens = this.#model.tokenize(text.slice(-max * 16));
    return tokens.length > max ? tokens.slice(-max) : tokens;
  }

  // Complete text. Returns { text, reason: "stop" | "length" | "abort", promptTokens, tokens }.
  // onText is called with each piece. Requests wait for each other; QueueFullError when too many do.
  complete(text, options = {}) {
    if (this.#waiting >= this.#queueMax)
      return Promise.reject(new QueueFullError(`${this.#queueMax} requests are waiting already`));
    this.#waiting++;
    const turn = this.#tail.then(() => this.#generate(text, options));
    this.#tail = turn.catch(() => {}).finally(() => this.#waiting--);
    return turn;
  }

  async #generate(text, { maxTokens = 64, temperature = 0, topP, seed, stop = [], signal, onText }) {
    const prompt = this.#clip(text);
    let tokens = 0;
    if (signal?.aborted)
      return { text: "", reason: "abort", promptTokens: prompt.length, tokens };
    const { response, metadata } = await this.#completion.generateCompletionWithMeta(prompt, {
      maxTokens, temperature, topP, seed, signal, stopOnAbortSignal: true,
      customStopTriggers: stop.length ? stop : undefined,
      onToken: (list) => { tokens += list.length; },
      onTextChunk: onText,
    });
    const reason = { maxTokens: "length", abort: "abort" }[metadata.stopReason] ?? "stop";
    return { text: response, reason, promptTokens: prompt.length, tokens };
  }

  async close() {
    await this.#tail;
    await this.#llama.dispose();
  }
}
