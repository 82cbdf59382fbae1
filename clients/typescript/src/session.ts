/** Calls to a gateway, or to several of one store: questions, refusals, and the way on when one does not answer. */

import createClient, { type Client as ApiClient } from "openapi-fetch";
import { Foreign, InvalidInput, OutcomeUnknown, RoostError, StoreOverloaded, StoreUnavailable, errorOf } from "./errors.js";
import type { paths } from "./schema.js";
import { within } from "./timing.js";

/** The whole HTTP API, typed: `api.GET("/sd/v1/instances", …)`. */
export type Api = ApiClient<paths>;
export type Fetch = (request: Request) => Promise<Response>;

/** For a call as a whole; each of several gateways gets its share. */
export const TIMEOUT_MS = 10_000;
/** The same for a heartbeat: shorter than the shortest default interval between two (5 s). */
export const BEAT_TIMEOUT_MS = 4_000;

export interface CallOptions {
  /** Doing it twice does what doing it once does: another gateway may be asked after one that said nothing. */
  repeatable?: boolean;
  timeoutMs?: number;
  signal?: AbortSignal | undefined;
}

/** What openapi-fetch gives back. */
type Answer<Data> = { data?: Data; error?: unknown; response: Response };

/** The gateway did not answer; what was asked may have been done. */
class Silent extends StoreUnavailable {}
/** It could not be reached: nothing was done. Only Node says so; in a browser it is `Silent`. */
class Unreached extends StoreUnavailable {}

const NOT_CONNECTED = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"]);

/** The URLs of a comma list; one without a scheme has that of the first. */
export function gatewayUrls(text: string): string[] {
  const parts = text.split(",").map(part => part.trim().replace(/\/+$/, "")).filter(Boolean);
  const scheme = parts[0]?.split("://")[0] ?? "";
  const urls = parts.map(part => (part.includes("://") ? part : `${scheme}://${part}`));
  const fits = (url: string) => /^https?:$/.test(URL.canParse(url) ? new URL(url).protocol : "");
  if (!urls.length || !urls.every(fits)) {
    throw new InvalidInput("every gateway URL must be http://host[:port] or https://host[:port]");
  }
  return [...new Set(urls)];
}

/** Gateways are used in their order: the first until it fails, then the next, after the last the first again. */
export class Session {
  readonly urls: readonly string[];
  readonly token: string;
  readonly fetch: Fetch;
  readonly #apis: Map<string, Api>;
  #current: string;

  constructor(url: string, token = "", fetch: Fetch = request => globalThis.fetch(request)) {
    this.urls = gatewayUrls(url);
    this.token = token;
    this.fetch = fetch;
    const headers = token ? { "X-API-Token": token } : {};
    this.#apis = new Map(this.urls.map(one => [one, createClient<paths>({ baseUrl: one, fetch, headers })]));
    this.#current = this.urls[0]!;
  }

  /** The gateway that is used now. */
  get url(): string {
    return this.#current;
  }

  /** The typed API of the gateway in use, for what this package has no verb for. */
  get api(): Api {
    return this.#apis.get(this.#current)!;
  }

  /** This one does not answer; use the next from now on, unless somebody has moved on already. */
  leave(failed: string): void {
    if (this.#current === failed) {
      this.#current = this.urls[(this.urls.indexOf(failed) + 1) % this.urls.length]!;
    }
  }

  /**
   * The answer, or the typed error that it stands for. A call that another gateway can safely answer is asked of
   * the next one when a gateway does not answer, within the time of the call.
   */
  async ask<Data>(
    call: (api: Api, signal: AbortSignal) => Promise<Answer<Data>>,
    { repeatable = false, timeoutMs = TIMEOUT_MS, signal }: CallOptions = {},
  ): Promise<Data> {
    for (let left = this.urls.length - 1; ; left--) {
      const url = this.#current;
      try {
        return await this.#send(url, call, timeoutMs / this.urls.length, signal);
      } catch (error) {
        if (signal?.aborted) {
          this.leave(url);  // it took too long
          throw signal.reason;
        }
        if (!(error instanceof StoreUnavailable) || error instanceof StoreOverloaded) throw error;
        this.leave(url);
        // Who says that its store is away did nothing; who says nothing, or is not Roost, may have.
        const mayGoOn = repeatable || !(error instanceof Silent || error instanceof Foreign);
        if (!mayGoOn) throw new OutcomeUnknown(error.message);
        if (!left) throw error;
      }
    }
  }

  async #send<Data>(
    url: string,
    call: (api: Api, signal: AbortSignal) => Promise<Answer<Data>>,
    timeoutMs: number,
    signal?: AbortSignal,
  ): Promise<Data> {
    const api = this.#apis.get(url)!;
    const answer = await within(timeoutMs, signal, own => call(api, own)).catch(error => {
      throw lost(url, error);
    });
    if (answer.error !== undefined || !answer.response.ok) throw refusal(url, answer.response, answer.error);
    return answer.data as Data;
  }
}

/** Why nothing came back: `fetch` says only that it failed, and a body that is no JSON is not Roost's. */
function lost(url: string, error: unknown): RoostError {
  if (error instanceof SyntaxError) return new Foreign(`the reply of ${url} is not as expected: ${error.message}`);
  const code = (error as { cause?: { code?: string } }).cause?.code ?? "";
  const kind = NOT_CONNECTED.has(code) ? Unreached : Silent;
  return new kind(`the gateway at ${url} did not answer: ${reasonOf(error)}`);
}

export function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return cause instanceof Error ? cause.message || cause.name : String(cause);
}

/** The error that the gateway sent, as the class it stands for. */
export function refusal(url: string, response: Response, body: unknown): RoostError {
  const seconds = response.headers.get("Retry-After") ?? "";
  const retryAfterMs = /^[0-9]+$/.test(seconds) ? Number(seconds) * 1000 : 0;
  const detail = (body as { error?: { code?: unknown } } | undefined)?.error;
  if (typeof detail?.code === "string") return errorOf(detail as never, response.status, retryAfterMs);
  const foreign = new Foreign(`${url} answers ${response.status}, but not as Roost does`);
  foreign.retryAfterMs = retryAfterMs;
  foreign.status = response.status;
  return foreign;
}
