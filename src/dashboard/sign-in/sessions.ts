import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Caller } from '../../api/plumbing/caller.js';
import type { Secret } from '../../core/secret.js';
import type { Database } from '../../db/connection/database.js';
import { inTransaction, type Transaction } from '../../db/connection/transaction.js';
import { deleteSession, findSession, insertSession, removeIdleSessions } from '../../db/tables/sessions.js';
import type { OidcSettings } from './oidc-settings.js';

/** The longest life of a session. A person's is shorter, since the issuer gives their role only at its beginning. */
const WHOLE_SECONDS = { token: 24 * 3_600, person: 8 * 3_600 };
/** Each sign-in removes at most this many ended sessions. */
const REMOVED_AT_ONCE = 100;

export interface Session {
  readonly caller: Caller & { readonly sessionId: string };
  /** Proves that a form comes from a page of this session. */
  readonly csrf: string;
  /** Whether it began by OpenID Connect. */
  readonly isPerson: boolean;
}

interface SessionsDependencies {
  readonly db: Database;
  readonly adminToken: Secret;
  readonly oidc?: OidcSettings | undefined;
}

/**
 * Sessions of the control room. The browser keeps a random key and the database its hash, so that a copy of the database lets no one in. A
 * session ends with its token; the session of a person also ends when the role settings change.
 */
export class Sessions {
  readonly #db: Database;
  readonly #adminToken: Secret;
  readonly #oidc: OidcSettings | undefined;

  constructor({ db, adminToken, oidc }: SessionsDependencies) {
    this.#db = db;
    this.#adminToken = adminToken;
    this.#oidc = oidc;
  }

  /** Begins a session for the owner of a token. Returns its key, for the cookie. */
  async begin({
    name,
    role,
    tokenId = null,
  }: Omit<Caller, 'tokenId'> & { readonly tokenId?: string | null | undefined }): Promise<string> {
    const key = newKey();
    const row = { idHash: idOf(key), name, role, tokenId, tokenProof: this.#tokenProof(key) };
    await insertSession(this.#db.prisma, { ...row, wholeSeconds: WHOLE_SECONDS.token });
    await removeIdleSessions(this.#db, { limit: REMOVED_AT_ONCE });
    return key;
  }

  /** Begins a session for a person who signed in by OpenID Connect; `alongside` commits with it. Returns its key. */
  async beginForPerson(
    { name, role, settings }: Pick<Caller, 'name' | 'role'> & { readonly settings: OidcSettings },
    alongside: (tx: Transaction) => Promise<void>,
  ): Promise<string> {
    const key = newKey();
    const row = { idHash: idOf(key), name, role, tokenId: null, tokenProof: personProof(key, settings) };
    await inTransaction(this.#db, async (tx) => {
      await insertSession(tx, { ...row, wholeSeconds: WHOLE_SECONDS.person });
      await alongside(tx);
    });
    await removeIdleSessions(this.#db, { limit: REMOVED_AT_ONCE });
    return key;
  }

  /** Undefined if there is no such session, or it has ended. */
  async find(key: string): Promise<Session | undefined> {
    const sessionId = idOf(key);
    const row = await findSession(this.#db, { idHash: sessionId });
    if (!row) return undefined;
    const isPerson = this.#oidc !== undefined && row.tokenProof === personProof(key, this.#oidc);
    if (row.tokenId === null && !isPerson && row.tokenProof !== this.#tokenProof(key)) return undefined;
    const { name, tokenId } = row;
    const role = row.role as Caller['role'];
    return { caller: { name, role, sessionId, ...(tokenId !== null && { tokenId }) }, csrf: csrfOf(key), isPerson };
  }

  async end(key: string): Promise<void> {
    await deleteSession(this.#db, { idHash: idOf(key) });
  }

  /** The key is a salt, so that the token cannot be guessed from the hash. */
  #tokenProof(key: string): string {
    return digest('token', key, this.#adminToken.reveal());
  }
}

function personProof(key: string, { issuer, clientId, roleClaim, roles, nameClaim }: OidcSettings): string {
  return digest(
    'person',
    key,
    JSON.stringify([issuer, clientId, roleClaim, roles.admin, roles.operator, roles.viewer, nameClaim]),
  );
}

/** Compares two texts in constant time. */
export function isSameText(given: string, right: string): boolean {
  const [a, b] = [given, right].map((text) => createHash('sha256').update(text).digest());
  return timingSafeEqual(a!, b!);
}

const newKey = () => randomBytes(32).toString('base64url');
const idOf = (key: string) => digest('session', key);
const csrfOf = (key: string) => digest('form', key);

function digest(...parts: readonly string[]): string {
  return createHash('sha256').update(parts.join('\0')).digest('base64url');
}
