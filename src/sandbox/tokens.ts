import { randomBytes } from 'node:crypto';
import type { Clock } from '../core/clock.js';

/** The most tokens of a kind, to bound the memory of a sandbox that runs for days. */
const KEPT = 100_000;

/** Opaque texts, each with a value until it expires. */
export class Tokens<T> {
  readonly #clock: Clock;
  readonly #lifeMs: number;
  readonly #issued = new Map<string, { readonly value: T; readonly expiresAt: number }>();

  constructor(clock: Clock, seconds: number) {
    this.#clock = clock;
    this.#lifeMs = seconds * 1000;
  }

  issue(value: T, token = randomToken()): string {
    for (const oldest of this.#issued.keys()) if (this.#issued.size >= KEPT) this.#issued.delete(oldest);
    this.#issued.set(token, { value, expiresAt: this.#clock.now() + this.#lifeMs });
    return token;
  }

  /** The value of the token; undefined for a text that was never issued. */
  read(token: string): { readonly value: T; readonly isExpired: boolean } | undefined {
    const issued = this.#issued.get(token);
    return issued && { value: issued.value, isExpired: this.#clock.now() >= issued.expiresAt };
  }

  delete(token: string): void {
    this.#issued.delete(token);
  }

  deleteOf(isMeant: (value: T) => boolean): void {
    for (const [token, { value }] of this.#issued) if (isMeant(value)) this.#issued.delete(token);
  }
}

export function randomToken(): string {
  return randomBytes(24).toString('base64url');
}
