import { isMusterError } from '../core/errors.js';
import { poolsTransactions } from '../db/connection/pooling.js';
import { type Reader, readOnly } from '../db/connection/read-only.js';
import { hasTables } from '../db/connection/server-state.js';
import type { Session } from '../db/connection/session.js';
import { type Finding, NotLookedAt, ok, warning } from './check.js';

/** A pooler gives each session, or each transaction, a connection of the server. */
export type Pooling = 'none' | 'sessions' | 'transactions';

/** Where the database is, or why there is none to look into. */
export type DatabasePlace = { readonly url: string } | { readonly absent: Finding };

/**
 * Lets one check after the other look into the database, so that an examination takes one connection. The first check learns why the database cannot
 * be reached; the others report that they could not look.
 */
export class DatabaseAccess {
  readonly #place: DatabasePlace;
  #reached: Promise<void> | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(place: DatabasePlace) {
    this.#place = place;
  }

  /** Serves the check of the connection itself: throws why there is none. */
  async examine<T>(work: (db: Reader, pooling: Pooling) => Promise<T>): Promise<T> {
    if ('absent' in this.#place) throw new NotLookedAt(this.#place.absent);
    const { url } = this.#place;
    await this.#reach(url);
    return this.#read(url, async (db, session) => work(db, await poolingOf(url, session)));
  }

  /** Serves all other checks: throws NotLookedAt where there is no connection, or where Muster has no tables there yet. */
  async read<T>(work: (db: Reader) => Promise<T>): Promise<T> {
    if ('absent' in this.#place) throw notLookedAt();
    await this.#reach(this.#place.url).catch(() => Promise.reject(notLookedAt()));
    return this.#read(this.#place.url, async (db) => {
      if (!(await hasTables(db))) throw new NotLookedAt(ok('nothing to look at: the database has no tables of Muster yet'));
      return work(db);
    }).catch((error: unknown) => {
      throw isMusterError(error, 'database_unavailable') ? new NotLookedAt(warning(...lost(error.message))) : error;
    });
  }

  #reach(url: string): Promise<void> {
    return (this.#reached ??= readOnly(url, async () => {}));
  }

  #read<T>(url: string, work: (db: Reader, session: Session) => Promise<T>): Promise<T> {
    const mine = this.#last.then(() => readOnly(url, work));
    this.#last = mine.catch(() => {});
    return mine;
  }
}

/** A session through a pooler shows that there is one, but not which kind. */
async function poolingOf(url: string, session: Session): Promise<Pooling> {
  if (session === 'own') return 'none';
  return (await poolsTransactions(url)) ? 'transactions' : 'sessions';
}

function notLookedAt(): NotLookedAt {
  return new NotLookedAt(warning(...lost('the database cannot be reached')));
}

const lost = (why: string) => [`not looked at: ${why}`, 'See what is said of the database.'] as const;
