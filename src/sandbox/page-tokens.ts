import { randomBytes } from 'node:crypto';
import type { Clock } from '../core/clock.js';
import type { Place } from './record-list.js';
import { encode, readSigned, sign } from './signed-text.js';

/** Opaque tokens of the continuation lists: signed, bound to their list, good for a while. */
export class PageTokens {
  readonly #clock: Clock;
  readonly #lifeMs: number;
  readonly #key = randomBytes(32).toString('hex');

  constructor(clock: Clock, seconds: number) {
    this.#clock = clock;
    this.#lifeMs = seconds * 1000;
  }

  issue(list: string, place: Place): string {
    return sign(this.#key, encode({ list, place, at: this.#clock.now() }));
  }

  /** The place that a token stands for; undefined when it is not one of ours, of another list, or expired. */
  read(list: string, token: string): Place | undefined {
    const value = readSigned(this.#key, token) as { list: string; place: Place; at: number } | undefined;
    if (!value || value.list !== list || this.#clock.now() - value.at >= this.#lifeMs) return undefined;
    return value.place;
  }
}
