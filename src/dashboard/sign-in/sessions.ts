import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Caller } from '../../api/plumbing/caller.js';
import type { Secret } from '../../core/secret.js';
import type { Database } from '../../db/connection/database.js';
import { inTransaction, type Transaction } from '../../db/connection/transaction.js';
import { deleteSession, findSession, insertSession, removeIdleSessions } from '../../db/tables/sessions.js';
import type { OidcSettings } from './oidc-settings.js';

/** How long a session lasts at most: one of a person is shorter, since the issuer is asked about their role at its beginning alone. */
const WHOLE_SECONDS = { token: 24 * 3_600, person: 8 * 3_600 };
/** Sessions that ended are removed by whoever signs in, so many at most. */
const REMOVED_AT_ONCE = 100;

/** Somebody who is signed in. */
export interface Session {
  readonly caller: Caller & { readonly sessionId: string };
  /** Proves that a form comes from a page of this session. */
  readonly csrf: string;
  /** Whether it was begun by OpenID Connect. */
  readonly isPerson: boolean;
}

interface SessionsDependencies {
  readonly db: Database;
  readonly adminToken: Secret;
  readonly oidc?: OidcSettings | undefined;
}

/**
 * Who is signed in to the control room. The browser keeps a random key, the database its hash: neither a copy of the database nor a log of it lets
 * anybody in. A session ends with its token; that of a person ends, too, when other settings say who has which role.
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

  /** Begins one for whoever bore a token. Returns the session's key, for the cookie. */
  async begin({
    name,
    role,
    tokenId = null,
  }: Omit<Caller, 'tokenId'> & { readonly tokenId?: string | null | undefined }): Promise<string> {
    const key = newKey();
    const row = { idHash: idOf(key), name, role, tokenId, tokenProof: this.#proofOf(key) };
    await insertSession(this.#db.prisma, { ...row, wholeSeconds: WHOLE_SECONDS.token });
    await removeIdleSessions(this.#db, { limit: REMOVED_AT_ONCE });
    return key;
  }

  /** Begins one for somebody who signed in by OpenID Connect; `alongside` commits with it. Returns the session's key. */
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

  /** Undefined when there is no such session, or it has ended. */
  async find(key: string): Promise<Session | undefined> {
    const sessionId = idOf(key);
    const row = await findSession(this.#db, { idHash: sessionId });
    if (!row) return undefined;
    const isPerson = this.#oidc !== undefined && row.tokenProof === personProof(key, this.#oidc);
    if (row.tokenId === null && !isPerson && row.tokenProof !== this.#proofOf(key)) return undefined;
    const { name, tokenId } = row;
    const role = row.role as Caller['role'];
    return { caller: { name, role, sessionId, ...(tokenId !== null && { tokenId }) }, csrf: csrfOf(key), isPerson };
  }

  async end(key: string): Promise<void> {
    await deleteSession(this.#db, { idHash: idOf(key) });
  }

  /** The key stands in it as a salt, so that the token cannot be guessed from the hash. */
  #proofOf(key: string): string {
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

/** Whether a form brought the right text. */
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
