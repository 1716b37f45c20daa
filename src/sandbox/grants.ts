import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Clock } from '../core/clock.js';
import { makeFolder, unusableHome } from '../core/home.js';
import { digest } from '../core/secret.js';
import { randomToken, Tokens } from './tokens.js';

/** A person on the consent page, and what the person may see. */
export interface Person {
  /** Access tokens are JWTs with these claims. Without claims they are opaque. */
  readonly claims?: Readonly<Record<string, unknown>>;
  /** Ids of records that the person does not see, in any list. */
  readonly hides?: readonly string[];
}

/** The permission of a member for one company. Every token comes from a grant. */
interface Grant {
  readonly id: string;
  readonly companyId: string;
  person: Person;
  revoked: boolean;
}

/** A grant as stored in the file: refresh tokens only as hashes. */
interface KeptGrant extends Omit<Grant, 'person'> {
  readonly person?: Person;
  readonly refreshTokens: readonly { readonly hash: string; readonly spent: boolean }[];
}

export interface IssuedTokens {
  readonly accessToken: string;
  readonly refreshToken: string;
  readonly companyId: string;
}

/** Grants and their tokens. A refresh token works once: each use gives the next one. */
export class Grants {
  /** How often a spent refresh token came: a real service would end the authorization. */
  reusedRefreshTokens = 0;
  readonly #accessTokens: Tokens<Grant>;
  readonly #grants = new Map<string, Grant>();
  /** The person who authorizes for a company, unless that person sees everything. */
  readonly #persons = new Map<string, Person>();
  /** Refresh tokens by hash, so that the file is useless to other readers. */
  readonly #refreshTokens = new Map<string, { readonly grant: Grant; spent: boolean }>();
  /** Grants that are refused for a while. A restart forgets them. */
  readonly #suspended = new Set<Grant>();
  readonly #file: string | undefined;

  /** `file` stores the grants, as a real provider would; without it, a restart forgets every grant. */
  constructor(clock: Clock, accessTokenSeconds: number, file?: string) {
    this.#accessTokens = new Tokens(clock, accessTokenSeconds);
    this.#file = file;
    for (const { refreshTokens, person = {}, ...kept } of file === undefined ? [] : readGrants(file)) {
      const grant = { ...kept, person };
      this.#grants.set(grant.id, grant);
      for (const { hash, spent } of refreshTokens) this.#refreshTokens.set(hash, { grant, spent });
    }
  }

  /** Makes a grant and returns its first refresh token. */
  open(companyId: string): string {
    const grant: Grant = { id: randomToken(), companyId, revoked: false, person: this.#persons.get(companyId) ?? {} };
    this.#grants.set(grant.id, grant);
    const refreshToken = this.#issueRefreshToken(grant);
    this.#save();
    return refreshToken;
  }

  /** Spends a refresh token; undefined if it is unknown, spent or revoked. */
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

  /** From now on this person authorizes for the company. */
  setPerson(companyId: string, person: Person): void {
    this.#persons.set(companyId, person);
  }

  /** Gives the existing grants of the company to this person, as if the person's role had changed. */
  changePerson(companyId: string, person: Person): void {
    this.setPerson(companyId, person);
    for (const grant of this.#grants.values()) if (grant.companyId === companyId) grant.person = person;
    this.#save();
  }

  /** The company and person of an access token, or why it is not valid. */
  check(accessToken: string): { companyId: string; person: Person } | { problem: 'unknown' | 'expired' | 'revoked' } {
    const issued = this.#accessTokens.read(accessToken);
    if (!issued) return { problem: 'unknown' };
    if (this.#isRevoked(issued.value)) return { problem: 'revoked' };
    if (issued.isExpired) return { problem: 'expired' };
    return { companyId: issued.value.companyId, person: issued.value.person };
  }

  /** Ends every token of the company. */
  revoke(companyId: string): void {
    for (const grant of this.#grants.values()) if (grant.companyId === companyId) grant.revoked = true;
    this.#save();
  }

  /** Refuses all existing grants of the company. Returns a function that accepts them again. */
  suspend(companyId: string): () => void {
    const suspended = this.#grantsOf(companyId).filter((grant) => !this.#suspended.has(grant));
    for (const grant of suspended) this.#suspended.add(grant);
    return () => {
      for (const grant of suspended) this.#suspended.delete(grant);
    };
  }

  /** Forgets the access tokens of the company; its refresh tokens still work. */
  endAccessTokens(companyId: string): void {
    this.#accessTokens.deleteOf((grant) => grant.companyId === companyId);
  }

  /** The company of a refresh token, even of a spent one. */
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

  /** Stores grants and hashes before any response announces a change. Only the newest spent tokens are stored. */
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

/** The stored refresh tokens of a grant, newest last. All but the last are spent. */
const KEPT_TOKENS = 20;

/** An access token that looks like a JWT, as in the service. Clients must not depend on that. */
function accessTokenOf({ claims }: Person): string {
  if (!claims) return [randomToken(), randomToken(), randomToken()].join('.');
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const header = { alg: 'RS256', typ: 'JWT' };
  return [part(header), part({ ...claims, jti: randomToken() }), randomToken()].join('.');
}

function readGrants(path: string): KeptGrant[] {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as KeptGrant[];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw unusableHome(`${path} cannot be read`, error);
  }
}

/** Writes the file completely or not at all. */
function writeGrants(path: string, grants: readonly KeptGrant[]): void {
  makeFolder(dirname(path));
  writeFileSync(`${path}.new`, JSON.stringify(grants), { mode: 0o600 });
  renameSync(`${path}.new`, path);
}
