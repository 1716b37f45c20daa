import { once, setMaxListeners } from 'node:events';
import { isDeepStrictEqual } from 'node:util';
import type { ServedRequest } from './request-log.js';

/**
 * What goes wrong with a request. `before`: the service never saw it. `after`: it took effect (a refresh token is spent) and
 * only the answer is lost.
 */
export type Effect =
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      /** Bytes go out as they are: with a content-encoding among the headers, a compressed answer. */
      readonly body?: string | Buffer;
    }
  /** The connection is cut; `midway`: after half of the body. */
  | { readonly kind: 'drop'; readonly when: 'before' | 'midway' | 'after' }
  /** No answer ever comes. */
  | { readonly kind: 'hang'; readonly when: 'before' | 'after' }
  | { readonly kind: 'delay'; readonly ms: number }
  /** The request waits until the faults are cleared, and is served then. */
  | { readonly kind: 'hold' }
  /** A whole answer of which the second half is missing. */
  | { readonly kind: 'truncate' }
  /** The body is compressed, and Content-Encoding says so. */
  | { readonly kind: 'encode'; readonly coding: 'br' | 'deflate' }
  /** These bytes take the place of a whole HTTP answer, and the connection ends. */
  | { readonly kind: 'raw'; readonly text: string }
  /** At most `take` records, whatever was asked for. Of a numbered page the rest is lost: the next page begins where it always does. */
  | { readonly kind: 'clamp'; readonly take: number }
  /**
   * Members of the JSON answer (of the envelope, where a list has one) become other values, undefined removes them, and `headers`
   * replace those of the answer: lies about totals, loops of page tokens, token answers without refresh_token.
   */
  | {
      readonly kind: 'alter';
      readonly members?: Readonly<Record<string, unknown>>;
      readonly headers?: Readonly<Record<string, string>>;
    };

/** Which requests meet the effect. */
export interface FaultTarget {
  readonly method?: string;
  /** Part of the path, or a pattern of it. Default: every path outside /sandbox/. */
  readonly path?: string | RegExp;
  /**
   * Members of the query or of the JSON body, as ServedRequest has them: they tell the pages of a list apart, which are asked
   * for several at once and may arrive in any order.
   */
  readonly input?: Readonly<Record<string, unknown>>;
  /** Matching requests that pass unharmed first. Default 0. */
  readonly skip?: number;
  /** Matching requests that are met. Default 1; Infinity: until cleared. */
  readonly times?: number;
}

interface Fault {
  readonly effect: Effect;
  readonly target: FaultTarget;
  skip: number;
  left: number;
}

/** Faults to come. A request meets at most one: the oldest that matches it. */
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

  /** Resolves when the faults of now are cleared; throws when `stopped` aborts before. */
  async cleared(stopped: AbortSignal): Promise<void> {
    await once(this.#held.signal, 'abort', { signal: stopped });
  }

  /** How many requests are still to be met. */
  get pending(): number {
    return this.#faults.reduce((sum, { left }) => sum + left, 0);
  }

  /** The effect that this request meets; uses it up. */
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

/** Each request that is held adds a listener, and there may be many of them. */
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
