import { once, setMaxListeners } from 'node:events';
import { isDeepStrictEqual } from 'node:util';
import type { ServedRequest } from './request-log.js';

/**
 * The failure of a request. `before`: the service never saw the request. `after`: the request took effect (a refresh token is spent), and
 * only the response is lost.
 */
export type Effect =
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      /** Bytes are sent as they are; with a content-encoding header, they are a compressed response. */
      readonly body?: string | Buffer;
    }
  /** The connection is cut; `midway`: after half of the body. */
  | { readonly kind: 'drop'; readonly when: 'before' | 'midway' | 'after' }
  /** No response ever comes. */
  | { readonly kind: 'hang'; readonly when: 'before' | 'after' }
  | { readonly kind: 'delay'; readonly ms: number }
  /** The request waits until the faults are cleared, and is served then. */
  | { readonly kind: 'hold' }
  /** The response is complete as HTTP, but the second half of its body is missing. */
  | { readonly kind: 'truncate' }
  /** The body is compressed, and Content-Encoding says so. */
  | { readonly kind: 'encode'; readonly coding: 'br' | 'deflate' }
  /** These bytes replace the HTTP response, and the connection ends. */
  | { readonly kind: 'raw'; readonly text: string }
  /** A page has at most `take` records. The rest of a numbered page is lost, since the next page begins where it always does. */
  | { readonly kind: 'clamp'; readonly take: number }
  /**
   * Replaces members of the JSON response (or of its envelope) and headers; undefined removes a member. This makes wrong totals, loops of page
   * tokens, and token responses without refresh_token.
   */
  | {
      readonly kind: 'alter';
      readonly members?: Readonly<Record<string, unknown>>;
      readonly headers?: Readonly<Record<string, string>>;
    };

/** The requests that have the effect. */
export interface FaultTarget {
  readonly method?: string;
  /** Part of the path, or a pattern of it. Default: every path outside /sandbox/. */
  readonly path?: string | RegExp;
  /**
   * Members of the query or of the JSON body, as in ServedRequest. They identify a page, since concurrent requests for pages of a list arrive in
   * any order.
   */
  readonly input?: Readonly<Record<string, unknown>>;
  /** Matching requests that first pass without the effect. Default 0. */
  readonly skip?: number;
  /** Matching requests that have the effect. Default 1; Infinity: until cleared. */
  readonly times?: number;
}

interface Fault {
  readonly effect: Effect;
  readonly target: FaultTarget;
  skip: number;
  left: number;
}

/** Planned faults. A request has at most one: the oldest that matches. */
export class Faults {
  #faults: Fault[] = [];
  #held = holding();

  add(effect: Effect, target: FaultTarget = {}): void {
    this.#faults.push({ effect, target, skip: target.skip ?? 0, left: target.times ?? 1 });
  }

  clear(): void {
    this.#faults = [];
    this.#held.abort();
    this.#held = holding();
  }

  /** Resolves when the current faults are cleared; throws if `stopped` aborts before. */
  async cleared(stopped: AbortSignal): Promise<void> {
    await once(this.#held.signal, 'abort', { signal: stopped });
  }

  /** How many requests will still have a fault. */
  get pending(): number {
    return this.#faults.reduce((sum, { left }) => sum + left, 0);
  }

  /** Takes the effect of this request. */
  meet(request: ServedRequest): Effect | undefined {
    for (const fault of this.#faults) {
      if (!matches(fault.target, request)) continue;
      if (fault.skip > 0) {
        fault.skip--;
        continue;
      }
      if (--fault.left <= 0) this.#faults = this.#faults.filter((other) => other !== fault);
      return fault.effect;
    }
    return undefined;
  }
}

/** Each held request adds a listener, so there is no limit of listeners. */
function holding(): AbortController {
  const held = new AbortController();
  setMaxListeners(0, held.signal);
  return held;
}

function matches(target: FaultTarget, { method, path, input }: ServedRequest): boolean {
  if (target.method !== undefined && target.method !== method) return false;
  for (const [name, value] of Object.entries(target.input ?? {})) if (!isDeepStrictEqual(input[name], value)) return false;
  if (target.path === undefined) return !path.startsWith('/sandbox');
  return typeof target.path === 'string' ? path.includes(target.path) : target.path.test(path);
}
