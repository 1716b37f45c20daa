export interface RateLimitOptions {
  /**
   * `bucket`: a bucket of `burst` requests that fills by `perSecond`. `window`: `perSecond` requests from one full second to the next. `log`:
   * `perSecond` requests in any second.
   */
  readonly kind: 'bucket' | 'window' | 'log';
  readonly perSecond: number;
  /** The size of a bucket. Default: `perSecond`. */
  readonly burst?: number;
  /** Whether a refusal has Retry-After. Default true. */
  readonly retryAfter?: boolean;
  /** Whether every response has `RateLimit-Policy` and `RateLimit`. Default false. */
  readonly headers?: boolean;
}

export interface Admission {
  readonly isAdmitted: boolean;
  readonly headers: Readonly<Record<string, string>>;
}

/** Counts requests and refuses the ones beyond the limit. Refused requests do not count. */
export class RateLimiter {
  readonly #options: RateLimitOptions;
  #tokens: number;
  #filledAt = 0;
  #window = 0;
  #inWindow = 0;
  #log: number[] = [];

  constructor(options: RateLimitOptions) {
    this.#options = options;
    this.#tokens = this.#burst;
  }

  /** `now` in milliseconds. */
  admit(now: number): Admission {
    const { retryAfter = true, headers = false, perSecond } = this.#options;
    const isAdmitted = this.#take(now);
    return {
      isAdmitted,
      headers: {
        ...(!isAdmitted && retryAfter && { 'retry-after': '1' }),
        ...(headers && {
          'ratelimit-policy': `"default";q=${perSecond};w=1`,
          ratelimit: `"default";r=${Math.floor(this.#left(now))};t=1`,
        }),
      },
    };
  }

  get #burst(): number {
    return this.#options.burst ?? this.#options.perSecond;
  }

  #take(now: number): boolean {
    if (this.#left(now) < 1) return false;
    this.#tokens -= 1;
    this.#inWindow += 1;
    this.#log.push(now);
    return true;
  }

  #left(now: number): number {
    const { kind, perSecond } = this.#options;
    this.#tokens = Math.min(this.#burst, this.#tokens + ((now - this.#filledAt) / 1_000) * perSecond);
    this.#filledAt = now;
    const window = Math.floor(now / 1_000);
    if (window !== this.#window) this.#inWindow = 0;
    this.#window = window;
    this.#log = this.#log.filter((at) => at > now - 1_000);
    if (kind === 'bucket') return this.#tokens;
    return perSecond - (kind === 'window' ? this.#inWindow : this.#log.length);
  }
}
