import { setTimeout as sleep } from 'node:timers/promises';
import { type CompanyKey, describeCompany, logFieldsOf } from '../core/company.js';
import { isMusterError, MusterError } from '../core/errors.js';
import { isPassingTrouble, sqlState } from '../db/connection/sql-state.js';
import { untilCommitted } from '../db/connection/transaction.js';
import type { Logger } from '../observability/logger.js';

/** How often the database is asked to take a pair while somebody waits: for half a minute, which proxies wait for an answer, too. */
const PATIENT_RETRIES = 8;
/** How often a pair in memory is offered to the database. */
const PAUSE_MS = 5_000;
/** How long a process that ends goes on offering. */
const FAREWELL_MS = 5_000;

/** A pair that was received, and the two ways to keep it. Both are harmless when repeated. */
export interface ReceivedPair<T> {
  readonly company: CompanyKey;
  /** Stores the pair where it belongs. */
  readonly store: () => Promise<T>;
  /** Keeps its refresh token in quarantine, for when the database refuses the other. */
  readonly setAside: () => Promise<void>;
  /** The hash of the token that was given for it. */
  readonly successorOf?: string | undefined;
}

/**
 * The pairs that were received and are not on record yet: the service has spent every token before them, and they exist nowhere else. A pair
 * is *offered* to the database for half a minute, then *set aside* in quarantine, and, while the database takes nothing at all, *kept in memory*
 * and offered until it is stored or set aside. Only the end of the process ends that.
 */
export class UnsavedTokenPairs {
  readonly #logger: Logger;
  readonly #retries: number;
  readonly #pauseMs: number;
  readonly #inMemory = new Map<ReceivedPair<unknown>, Promise<void>>();
  readonly #ending = new AbortController();

  constructor(logger: Logger, { retries = PATIENT_RETRIES, pauseMs = PAUSE_MS }: { retries?: number; pauseMs?: number } = {}) {
    this.#logger = logger;
    this.#retries = retries;
    this.#pauseMs = pauseMs;
  }

  /** What `store` gives. Throws `token_not_stored` when the pair was set aside, or is kept in memory; the message says which. */
  async keep<T>(pair: ReceivedPair<T>): Promise<T> {
    try {
      return await untilCommitted(pair.store, this.#retries);
    } catch (cause) {
      const error = (await this.#isSetAside(pair)) ? setAsideError(pair, cause) : this.#keepInMemory(pair, cause);
      this.#logger.error(
        { err: error, ...logFieldsOf(pair.company), sql_state: stateBehind(cause) },
        'tokens could not be stored',
      );
      throw error;
    }
  }

  /** Throws `token_not_stored` while the pair that came for the token with this hash is kept in memory. */
  refuseKept(successorOf: string): void {
    for (const pair of this.#inMemory.keys()) if (pair.successorOf === successorOf) throw inMemoryError(pair, undefined);
  }

  /** Await it before the database is closed: what is still kept in memory then is lost, and the log says of whom. */
  async settle(): Promise<void> {
    if (this.#inMemory.size === 0) return;
    await Promise.race([Promise.all(this.#inMemory.values()), sleep(FAREWELL_MS, undefined, { ref: false })]);
    this.#ending.abort();
    for (const { company } of this.#inMemory.keys())
      this.#logger.fatal(
        logFieldsOf(company),
        'the process ends and the database takes no tokens: this company must authorize again',
      );
    await Promise.all(this.#inMemory.values());
  }

  #keepInMemory(pair: ReceivedPair<unknown>, cause: unknown): MusterError {
    const offering = this.#offer(pair).finally(() => this.#inMemory.delete(pair));
    this.#inMemory.set(pair, offering);
    return inMemoryError(pair, cause);
  }

  async #offer(pair: ReceivedPair<unknown>): Promise<void> {
    const { signal } = this.#ending;
    while (!signal.aborted) {
      await sleep(this.#pauseMs, undefined, { signal, ref: false }).catch(() => undefined);
      if (!(await this.#isOnRecord(pair))) continue;
      this.#logger.info(logFieldsOf(pair.company), 'tokens that were kept in memory are on record');
      return;
    }
  }

  async #isOnRecord(pair: ReceivedPair<unknown>): Promise<boolean> {
    try {
      await pair.store();
      return true;
    } catch (error) {
      return !isPassingTrouble(error) && (await this.#isSetAside(pair));
    }
  }

  async #isSetAside({ company, setAside }: ReceivedPair<unknown>): Promise<boolean> {
    try {
      await setAside();
      return true;
    } catch (error) {
      this.#logger.warn({ err: error, ...logFieldsOf(company) }, 'a refresh token could not be set aside');
      return false;
    }
  }
}

function setAsideError({ company }: ReceivedPair<unknown>, cause: unknown): MusterError {
  return new MusterError(
    'token_not_stored',
    `The service granted ${describeCompany(company)} new tokens, and the database refused to store them (${stateOf(cause)}): nothing was changed, and the new refresh token is safe in quarantine. See that the database takes writes, then do the same again: it goes on with the token in quarantine`,
    { cause, details: { kept: 'quarantine', sql_state: stateBehind(cause) ?? null } },
  );
}

function inMemoryError({ company }: ReceivedPair<unknown>, cause: unknown): MusterError {
  return new MusterError(
    'token_not_stored',
    `The service granted ${describeCompany(company)} new tokens, and the database does not take them (${stateOf(cause)}): this process keeps them in its memory and stores them as soon as it can. Do not restart it and do not send the old token again; see that the database takes writes, then look at the company`,
    { cause, details: { kept: 'memory', sql_state: stateBehind(cause) ?? null } },
  );
}

/** The SQLSTATE of a database that answers. */
function stateBehind(cause: unknown): string | undefined {
  return sqlState(isMusterError(cause) && cause.code !== 'database_unavailable' ? cause.cause : cause);
}

function stateOf(cause: unknown): string {
  const state = stateBehind(cause);
  return state === undefined ? 'it does not answer' : `SQLSTATE ${state}`;
}
