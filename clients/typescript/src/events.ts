/** Server-sent events over `fetch`, which, unlike EventSource, can show a token or a receipt. */

import { Foreign, RoostError, StoreUnavailable } from "./errors.js";
import { TIMEOUT_MS, reasonOf, refusal, type Session } from "./session.js";

/** A stream without even a keep-alive for so long (three of them) is dead. */
const SILENCE_MS = 45_000;
/** Of a stream that is silent for so long the gateway is asked whether it lives, if there is another one. */
const CHECK_MS = 5_000;

export interface ServerEvent {
  id: string;
  name: string;
  data: string;
}

/** Events of a text that arrives in parts; `take` gives those that are complete. */
export class EventReader {
  #rest = "";
  #event: ServerEvent = { id: "", name: "", data: "" };

  take(text: string): ServerEvent[] {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop()!;
    const found: ServerEvent[] = [];
    for (const line of lines) {
      if (line) this.#field(line.replace(/\r$/, ""));
      else if (this.#event.data) {
        found.push(this.#event);
        this.#event = { id: this.#event.id, name: "", data: "" };
      }
    }
    return found;
  }

  #field(line: string): void {
    if (line.startsWith("id: ")) this.#event.id = line.slice(4);
    else if (line.startsWith("event: ")) this.#event.name = line.slice(7);
    else if (line.startsWith("data: ")) this.#event.data += (this.#event.data && "\n") + line.slice(6);
  }
}

/**
 * Events of the gateway in use, until it ends the stream; `StoreUnavailable` when it is cut off, the refusal where
 * there is one. The next call then asks the next gateway.
 */
export async function* events(
  session: Session,
  path: string,
  headers: Record<string, string>,
  signal: AbortSignal,
): AsyncGenerator<ServerEvent, void, undefined> {
  const url = session.url;
  const own = new AbortController();
  const end = () => own.abort(signal.reason);
  signal.addEventListener("abort", end);
  try {
    signal.throwIfAborted();
    yield* read(await open(session, url + path, headers, own), new Silence(session, url, own), own.signal);
    own.signal.throwIfAborted();
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof RoostError && !(error instanceof StoreUnavailable)) throw error;
    session.leave(url);
    if (error instanceof RoostError) throw error;
    throw new StoreUnavailable(`the gateway at ${url} does not answer: ${reasonOf(error)}`);
  } finally {
    signal.removeEventListener("abort", end);
    own.abort();
  }
}

async function open(
  session: Session, url: string, headers: Record<string, string>, own: AbortController,
): Promise<Response> {
  const token: Record<string, string> = session.token ? { "X-API-Token": session.token } : {};
  const timer = setTimeout(() => own.abort(new Error("no answer in time")), TIMEOUT_MS / session.urls.length);
  try {
    const asked = new Request(url, { headers: { ...token, ...headers }, signal: own.signal, cache: "no-store" });
    const response = await session.fetch(asked);
    const kind = response.headers.get("Content-Type") ?? "";
    if (!response.ok) throw refusal(url, response, await response.json().catch(() => undefined));
    if (!kind.startsWith("text/event-stream")) throw new Foreign(`${url} answers with ${kind}, not with events`);
    return response;
  } finally {
    clearTimeout(timer);
  }
}

/**
 * NB: it cancels the body itself. Node's `fetch` holds the signal only through the request, which is collected as
 * garbage while the body is read: an abort after that reaches nobody.
 */
async function* read(response: Response, silence: Silence, signal: AbortSignal): AsyncGenerator<ServerEvent, void, undefined> {
  const parser = new EventReader();
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  const cancel = () => void reader.cancel().catch(() => {});  // it may be broken already
  signal.addEventListener("abort", cancel);
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      silence.heard();
      yield* parser.take(part.value);
    }
  } finally {
    silence.end();
    signal.removeEventListener("abort", cancel);
    cancel();
  }
}

/** Ends a stream that says nothing; where there is another gateway it asks sooner whether this one lives. */
class Silence {
  #heardAt = performance.now();
  readonly #timer: ReturnType<typeof setInterval>;

  constructor(private readonly session: Session, private readonly url: string, private readonly own: AbortController) {
    this.#timer = setInterval(() => void this.#look(), CHECK_MS);
  }

  heard(): void {
    this.#heardAt = performance.now();
  }

  end(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    const silentMs = performance.now() - this.#heardAt;
    if (silentMs > SILENCE_MS) this.own.abort(new Error("the stream is silent"));
    else if (silentMs > CHECK_MS && this.session.urls.length > 1) {
      const asked = new Request(`${this.url}/healthz`, { signal: AbortSignal.timeout(CHECK_MS / 2) });
      await this.session.fetch(asked).catch(() => this.own.abort(new Error("the gateway does not answer")));
    }
  }
}
