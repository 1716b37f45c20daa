import { setTimeout as sleep } from 'node:timers/promises';
import { type CompanyKey, describeCompany, logFieldsOf } from '../core/company.js';
import { isMusterError, MusterError } from '../core/errors.js';
import { isPassingTrouble, sqlState } from '../db/connection/sql-state.js';
import { untilCommitted } from '../db/connection/transaction.js';
import type { Logger } from '../observability/logger.js';

/** Attempts to store a pair while the caller waits: half a minute, as long as proxies wait for an answer. */
const PATIENT_RETRIES = 8;
/** Interval at which a pair in memory is offered to the database. */
const PAUSE_MS = 5_000;
/** How long an ending process keeps offering. */
const ENDING_MS = 5_000;

/** A received pair, and two ways to keep it, which may both be repeated. */
export interface ReceivedPair<T> {
  readonly company: CompanyKey;
  /** Stores the pair where it belongs. */
  readonly store: () => Promise<T>;
  /** Puts its refresh token into quarantine, in case the database refuses `store`. */
  readonly setAside: () => Promise<void>;
  /** The hash of the token that was sent for it. */
  readonly successorOf?: string | undefined;
}

/**
 * Pairs that were received but are not stored yet. The service accepts no earlier token, and they exist nowhere else. A pair is *offered* to the
 * database for half a minute, then *set aside* in quarantine, and, while the database accepts nothing at all, *kept in memory* and offered until
 * it is stored or set aside, or the process ends.
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

  /** Returns the result of `store`. Throws `token_not_stored` if the pair was set aside or is kept in memory; the message says which. */
  async keep<T>(pair: ReceivedPair<T>): Promise<T> {
    try {
      return await untilCommitted(pair.store, this.#retries);
    } catch (cause) {
      const error = (await this.#isSetAside(pair)) ? notStored(pair, 'quarantine', cause) : this.#keepInMemory(pair, cause);
      const facts = { err: error, ...logFieldsOf(pair.company), sql_state: sqlStateOf(cause) };
      this.#logger.error(facts, 'tokens could not be stored');
      throw error;
    }
  }

  /** Throws `token_not_stored` while the successor of the token with this hash is kept in memory. */
  refuseKept(successorOf: string): void {
    for (const pair of this.#inMemory.keys()) if (pair.successorOf === successorOf) throw notStored(pair, 'memory');
  }

  /** Await it before you close the database. Pairs still in memory afterwards are lost, and the log names their companies. */
  async settle(): Promise<void> {
    if (this.#inMemory.size === 0) return;
    await Promise.race([Promise.all(this.#inMemory.values()), sleep(ENDING_MS, undefined, { ref: false })]);
    this.#ending.abort();
    for (const { company } of this.#inMemory.keys())
      this.#logger.fatal(
        logFieldsOf(company),
        'the process ends and the database accepts no tokens: this company must authorize again',
      );
    await Promise.all(this.#inMemory.values());
  }

  #keepInMemory(pair: ReceivedPair<unknown>, cause: unknown): MusterError {
    const offering = this.#offer(pair).finally(() => this.#inMemory.delete(pair));
    this.#inMemory.set(pair, offering);
    return notStored(pair, 'memory', cause);
  }

  async #offer(pair: ReceivedPair<unknown>): Promise<void> {
    const { signal } = this.#ending;
    while (!signal.aborted) {
      await sleep(this.#pauseMs, undefined, { signal, ref: false }).catch(() => undefined);
      if (!(await this.#isOnRecord(pair))) continue;
      this.#logger.info(logFieldsOf(pair.company), 'tokens that were kept in memory are stored');
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

const OUTCOMES = {
  quarantine: (state: string) =>
    `the database refused to store them (${state}): nothing was changed, and the new refresh token is safe in quarantine. Make sure that the database accepts writes, then repeat the request: it continues with the token in quarantine`,
  memory: (state: string) =>
    `the database does not accept them (${state}): this process keeps them in memory and stores them as soon as it can. Do not restart it and do not send the old token again; make sure that the database accepts writes, then look at the company`,
};

function notStored({ company }: ReceivedPair<unknown>, kept: keyof typeof OUTCOMES, cause?: unknown): MusterError {
  const state = sqlStateOf(cause);
  const outcome = OUTCOMES[kept](state === undefined ? 'it does not answer' : `SQLSTATE ${state}`);
  const message = `The service granted ${describeCompany(company)} new tokens, and ${outcome}`;
  return new MusterError('token_not_stored', message, { cause, details: { kept, sql_state: state ?? null } });
}

/** The SQLSTATE, if the database answered. */
function sqlStateOf(cause: unknown): string | undefined {
  return sqlState(isMusterError(cause) && cause.code !== 'database_unavailable' ? cause.cause : cause);
}
