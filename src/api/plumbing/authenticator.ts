import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../core/clock.js';
import type { Secret } from '../../core/secret.js';
import type { Database } from '../../db/connection/database.js';
import { ActiveTokens } from './active-tokens.js';
import { ADMIN, type Caller } from './caller.js';

/** Lets scanners for secrets know a token where it was published by mistake. */
const PREFIX = 'muster_';
/** Tokens of another form are not looked up. */
const NAMED_TOKEN = /^muster_[\w-]{43}$/;

interface AuthenticatorDependencies {
  readonly adminToken: Secret;
  readonly db: Database;
  readonly clock: Pick<Clock, 'monotonic'>;
}

/** Finds the caller of a token. The admin token needs no query. */
export class Authenticator {
  readonly #isAdmin: (token: string) => boolean;
  readonly #living: ActiveTokens;

  constructor({ adminToken, ...deps }: AuthenticatorDependencies) {
    this.#isAdmin = isToken(adminToken);
    this.#living = new ActiveTokens(deps);
  }

  /**
   * Returns the caller who has this token; undefined for one that is wrong, deleted or expired. A token that is deleted in this process ends at once;
   * one that expires, or that another process deletes, within a second. Throws `database_unavailable`.
   */
  async authenticate(token: string): Promise<Caller | undefined> {
    if (this.#isAdmin(token)) return ADMIN;
    return NAMED_TOKEN.test(token) ? this.#living.find(tokenHash(token)) : undefined;
  }

  /** To be called when a token was deleted. */
  forget(): void {
    this.#living.forget();
  }
}

export function newToken(): string {
  return PREFIX + randomBytes(32).toString('base64url');
}

/** Hashes a named token. No salt is needed: tokens are random, so no two are alike and none can be guessed. */
export function tokenHash(token: string): string {
  return digest(token).toString('hex');
}

export function isToken(token: Secret): (given: string) => boolean {
  const right = digest(token.reveal());
  // Digests have one length, so the comparison takes as long for every token.
  return (given) => timingSafeEqual(digest(given), right);
}

function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
