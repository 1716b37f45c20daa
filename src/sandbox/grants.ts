import { createHash } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Clock } from '../core/clock.js';
import { makeFolder, unusableHome } from '../core/home.js';
import { randomToken, Tokens } from './tokens.js';

/** Who goes through the consent page, and what they may see. */
export interface Person {
  /** Access tokens are JWTs with these claims; without, they cannot be read. */
  readonly claims?: Readonly<Record<string, unknown>>;
  /** Ids of the records that they are not shown, in any list. */
  readonly hides?: readonly string[];
}

/** What a member allowed the application to do with one company; every token stems from one. */
interface Grant {
  readonly id: string;
  readonly companyId: string;
  person: Person;
  revoked: boolean;
}

/** A grant as it outlives a restart: refresh tokens by their hashes only. */
interface KeptGrant extends Omit<Grant, 'person'> {
  readonly person?: Person;
  readonly refreshTokens: readonly { readonly hash: string; readonly spent: boolean }[];
}

export interface IssuedTokens {
  readonly accessToken: string;
  readonly refreshToken: string;
  readonly companyId: string;
}

/** Grants and the tokens that live by them. Refresh tokens are used once: each use gives the next. */
export class Grants {
  /** How often a refresh token came that was already spent: a client that does this would lose its company. */
  reusedRefreshTokens = 0;
  readonly #accessTokens: Tokens<Grant>;
  readonly #grants = new Map<string, Grant>();
  /** Who authorizes for a company, where it is not somebody who sees everything. */
  readonly #persons = new Map<string, Person>();
  /** By the token's hash: the file in which they outlive a restart must be of no use to whoever reads it. */
  readonly #refreshTokens = new Map<string, { readonly grant: Grant; spent: boolean }>();
  /** Grants that are refused for a while. No restart remembers them. */
  readonly #suspended = new Set<Grant>();
  readonly #file: string | undefined;

  /** `file` remembers who granted access, as a real provider would; without it, a restart forgets every grant. */
  constructor(clock: Clock, accessTokenSeconds: number, file?: string) {
    this.#accessTokens = new Tokens(clock, accessTokenSeconds);
    this.#file = file;
    for (const { refreshTokens, person = {}, ...kept } of file === undefined ? [] : readGrants(file)) {
      const grant = { ...kept, person };
      this.#grants.set(grant.id, grant);
      for (const { hash, spent } of refreshTokens) this.#refreshTokens.set(hash, { grant, spent });
    }
  }

  /** A new grant and its first refresh token. */
  open(companyId: string): string {
    const grant: Grant = { id: randomToken(), companyId, revoked: false, person: this.#persons.get(companyId) ?? {} };
    this.#grants.set(grant.id, grant);
    const refreshToken = this.#issueRefreshToken(grant);
    this.#save();
    return refreshToken;
  }

  /** Spends a refresh token; undefined when it is unknown, spent or revoked. */
  refresh(refreshToken: string): IssuedTokens | undefined {
    const kept = this.#refreshTokens.get(digest(refreshToken));
    if (!kept) return undefined;
    if (kept.spent) {
      this.reusedRefreshTokens++;
      return undefined;
    }
    if (this.#isRevoked(kept.grant)) return undefined;
    kept.spent = true;
    const next = this.#issueRefreshToken(kept.grant);
    this.#save();
    const accessToken = this.#accessTokens.issue(kept.grant, accessTokenOf(kept.grant.person));
    return { accessToken, refreshToken: next, companyId: kept.grant.companyId };
  }

  /** Whoever authorizes for the company from now on is this person. */
  setPerson(companyId: string, person: Person): void {
    this.#persons.set(companyId, person);
  }

  /** The living grants of the company are this person's from now on, as if their role had changed. */
  changePerson(companyId: string, person: Person): void {
    this.setPerson(companyId, person);
    for (const grant of this.#grants.values()) if (grant.companyId === companyId) grant.person = person;
    this.#save();
  }

  /** The company that an access token opens now and whose it is, or why it opens none. */
  check(accessToken: string): { companyId: string; person: Person } | { problem: 'unknown' | 'expired' | 'revoked' } {
    const issued = this.#accessTokens.read(accessToken);
    if (!issued) return { problem: 'unknown' };
    if (this.#isRevoked(issued.value)) return { problem: 'revoked' };
    if (issued.isExpired) return { problem: 'expired' };
    return { companyId: issued.value.companyId, person: issued.value.person };
  }

  /** Every token of the company ends now. */
  revoke(companyId: string): void {
    for (const grant of this.#grants.values()) if (grant.companyId === companyId) grant.revoked = true;
    this.#save();
  }

  /** Refuses the grants that the company has given until now. Returns how to take that back. */
  suspend(companyId: string): () => void {
    const suspended = this.#grantsOf(companyId).filter((grant) => !this.#suspended.has(grant));
    for (const grant of suspended) this.#suspended.add(grant);
    return () => {
      for (const grant of suspended) this.#suspended.delete(grant);
    };
  }

  /** Access tokens of the company are unknown from now on; its refresh tokens give others. */
  endAccessTokens(companyId: string): void {
    this.#accessTokens.deleteOf((grant) => grant.companyId === companyId);
  }

  /** The company whose refresh token this is or was. */
  companyOf(refreshToken: string): string | undefined {
    return this.#refreshTokens.get(digest(refreshToken))?.grant.companyId;
  }

  authorization(companyId: string): 'authorized' | 'revoked' | 'not authorized' {
    const grants = this.#grantsOf(companyId);
    if (grants.length === 0) return 'not authorized';
    return grants.some((grant) => !this.#isRevoked(grant)) ? 'authorized' : 'revoked';
  }

  #grantsOf(companyId: string): Grant[] {
    return [...this.#grants.values()].filter((grant) => grant.companyId === companyId);
  }

  #isRevoked(grant: Grant): boolean {
    return grant.revoked || this.#suspended.has(grant);
  }

  #issueRefreshToken(grant: Grant): string {
    const token = randomToken();
    this.#refreshTokens.set(digest(token), { grant, spent: false });
    return token;
  }

  /** Grants and hashes, before any answer says what changed. Old spent tokens are not worth keeping. */
  #save(): void {
    if (this.#file === undefined) return;
    const tokens = [...this.#refreshTokens].map(([hash, { grant, spent }]) => ({ hash, spent, grant }));
    const kept = [...this.#grants.values()].map((grant) => {
      const own = tokens.filter((token) => token.grant === grant).slice(-KEPT_TOKENS);
      return { ...grant, refreshTokens: own.map(({ hash, spent }) => ({ hash, spent })) };
    });
    writeGrants(this.#file, kept);
  }
}

/** Refresh tokens of one grant that a restart remembers, newest last; all but the last are spent. */
const KEPT_TOKENS = 20;

/** It looks like a JWT, as the service's do; clients must not care. */
function accessTokenOf({ claims }: Person): string {
  if (!claims) return [randomToken(), randomToken(), randomToken()].join('.');
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const header = { alg: 'RS256', typ: 'JWT' };
  return [part(header), part({ ...claims, jti: randomToken() }), randomToken()].join('.');
}

function digest(token: string): string {
  return createHash('sha256').update(token).digest('base64url');
}

function readGrants(path: string): KeptGrant[] {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as KeptGrant[];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw unusableHome(`${path} cannot be read`, error);
  }
}

/** Writes the file whole or not at all. */
function writeGrants(path: string, grants: readonly KeptGrant[]): void {
  makeFolder(dirname(path));
  writeFileSync(`${path}.new`, JSON.stringify(grants), { mode: 0o600 });
  renameSync(`${path}.new`, path);
}
