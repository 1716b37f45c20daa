import { randomUUID } from 'node:crypto';
import { type CompanyKey, companyNotFound, describeCompany, keyText, logFieldsOf } from '../core/company.js';
import { isMusterError, MusterError } from '../core/errors.js';
import type { Secret } from '../core/secret.js';
import { withDatabaseErrors } from '../db/connection/sql-state.js';
import { inTransaction } from '../db/connection/transaction.js';
import { lockConnection } from '../db/tables/connections.js';
import { endTrial } from '../db/tables/refresh-breakers.js';
import { recordRefused } from '../db/tables/refused-tokens.js';
import {
  findDueTokens,
  findToken,
  LEASE_MS,
  type Lease,
  releaseLease,
  type StoredToken,
  shortenLease,
  takeLease,
  takeLeaseAlone,
} from '../db/tables/tokens.js';
import { recordPathOf, type TokenSource } from '../http/token-source.js';
import type { Dependencies } from './grant-store.js';
import { adoptSuccessor, RefreshAttempt, readToken, tokenBusy } from './refresh-attempt.js';
import { NEEDED_MS, UNREADABLE_PAUSE_SECONDS } from './refresh-schedule.js';
import { KnownEvidence } from './token-evidence.js';
import { answerText } from './token-response.js';

/** Longer than a lease, so that a caller that waits outlives a lease whose owner crashed. */
const WAIT_MS = LEASE_MS + 5_000;
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 250;
/**
 * How long a token is given out again without a look at its row: a fast list asks for a token hundreds of times a second, and the run of a
 * small company should ask once. A tenth of the last seconds in which none is given out, so that it stays usable.
 */
const SAME_TOKEN_MS = 500;

/** A refresh under way in this process, and the access token in place of which another one is wanted. */
interface Flight {
  readonly stale: string | undefined;
  readonly token: Promise<Secret>;
}

/**
 * Gives out every company's access token and refreshes it. However many requests, workers and machines need the same company's token
 * at once, its refresh token is sent by one of them: in this process by sharing one promise, across processes by a lease
 * on the row. Everybody else waits, and reads the token that was stored.
 */
export class AccessTokenManager {
  readonly #deps: Dependencies;
  readonly #owner = randomUUID();
  readonly #flights = new Map<string, Flight>();
  readonly #evidence: KnownEvidence;

  constructor(deps: Dependencies) {
    this.#deps = deps;
    this.#evidence = new KnownEvidence(deps.db);
  }

  /**
   * The token source of one company. Besides `reauthorization_required` its calls throw `company_not_found`, `token_unreadable`,
   * `environment_not_configured`, `service_refused` (our client credentials), and, retryable, `database_unavailable`,
   * `token_busy`, `tokens_held`, `service_unreachable`, `service_timeout`, `service_error`, `service_throttled` while the authorization server
   * fails. Until the next attempt each call throws the error of the last attempt, and that is retryable.
   */
  sourceFor(company: CompanyKey): TokenSource {
    const { clock } = this.#deps;
    let recent: { readonly token: Promise<Secret>; readonly readAt: number } | undefined;
    const forget = () => (recent = undefined);
    return {
      recordPath: recordPathOf(company),
      get: () => {
        if (!recent || clock.monotonic() - recent.readAt >= SAME_TOKEN_MS) {
          const token = withDatabaseErrors(this.#get(company));
          recent = { token, readAt: clock.monotonic() };
          token.catch(forget);
        }
        return recent.token;
      },
      renew: (stale, unless) => (forget(), withDatabaseErrors(this.#renew(company, stale, unless))),
      refused: (token) => (forget(), withDatabaseErrors(this.#refused(company, token))),
      evidence: this.#evidence.of(company),
    };
  }

  /** Refreshes the company's token if it is still due: for the companies that `due` gave. Throws like a token source. */
  async refresh(company: CompanyKey): Promise<void> {
    const state = await withDatabaseErrors(readToken(this.#deps.db, company));
    if (state.due) await withDatabaseErrors(this.#share(company, undefined));
  }

  /**
   * Companies whose token is to be refreshed now, the longest due first. Paused companies are among them: a refresh token may
   * die of disuse, and resuming must work. A company that must authorize again is never among them.
   */
  async due(limit: number): Promise<CompanyKey[]> {
    const environments = Object.keys(this.#deps.endpoints);
    return withDatabaseErrors(findDueTokens(this.#deps.db, { environments, limit }));
  }

  /** Resolves when no refresh is under way in this process; await it before the database is closed. */
  async settle(): Promise<void> {
    await Promise.allSettled([...this.#flights.values()].map(({ token }) => token));
  }

  async #get(company: CompanyKey): Promise<Secret> {
    const state = await readToken(this.#deps.db, company);
    if (state.isRefused) this.#evidence.recordRefused(company);
    if (!state.usable) return this.#share(company, undefined);
    const token = this.#deps.vault.openAccess(state);
    if (!state.due) return token;
    // Refreshing ahead may fail without harm: the token in hand works until it expires.
    return this.#share(company, undefined).catch((error: unknown) => {
      if (isMusterError(error, 'reauthorization_required') || isMusterError(error, 'company_not_found')) throw error;
      return token;
    });
  }

  async #renew(company: CompanyKey, stale: Secret, unless: Parameters<TokenSource['renew']>[1]): Promise<Secret> {
    const state = await readToken(this.#deps.db, company);
    const isKnown = unless === 'refused-alone' && this.#evidence.isRefusedAlone(company, stale);
    const mayStay = state.usable && (isKnown || (unless === 'new' && state.isJustRenewed));
    if (mayStay) return this.#deps.vault.openAccess(state);
    return this.#suffices(state, stale) ? this.#deps.vault.openAccess(state) : this.#share(company, stale);
  }

  /**
   * A token that is not the newest, or is old, may be refused for its age, and the API may refuse everything for some seconds. Throws `token_busy` then: only a second
   * refusal half a minute later, with none of the company's tokens taken in between, ends the authorization.
   */
  async #refused(company: CompanyKey, token: Secret): Promise<void> {
    const { db, vault, connections, logger } = this.#deps;
    const outcome = await inTransaction(db, async (tx) => {
      if (!(await lockConnection(tx, company))) throw companyNotFound(company);
      const state = await findToken(tx, company);
      if (state.reauthorizationReason !== null) return 'ended';
      const isCurrent = state.accessToken !== null && vault.openAccess(state).reveal() === token.reveal();
      if (!isCurrent || !state.isJustRenewed || state.isLeased) return 'outdated';
      if (!state.isRefusedForLong) {
        await recordRefused(tx, company);
        return 'noted';
      }
      await connections.requireReauthorization(company, 'access_token_refused', tx);
      logger.warn({ ...logFieldsOf(company), reason: 'access_token_refused' }, 'company must authorize again');
      return 'ended';
    });
    if (outcome === 'outdated') throw tokenBusy(company);
    if (outcome === 'ended') return;
    this.#evidence.recordRefused(company);
    throw refusedOnce(company);
  }

  /**
   * One refresh at a time and company in this process. A refresh that was under way for another reason may bring the stale token itself; one that was made for this reason
   * and brings it has the service's last word.
   */
  async #share(company: CompanyKey, stale: Secret | undefined): Promise<Secret> {
    const name = keyText(company);
    for (;;) {
      let flight = this.#flights.get(name);
      if (!flight) {
        const token = this.#refresh(company, stale).finally(() => this.#flights.delete(name));
        flight = { stale: stale?.reveal(), token };
        this.#flights.set(name, flight);
      }
      const token = await flight.token;
      if (!stale || token.reveal() !== stale.reveal() || flight.stale === stale.reveal()) return token;
    }
  }

  /** Refreshes once it has the lease, or takes the token that the lease's owner has stored meanwhile. */
  async #refresh(company: CompanyKey, stale: Secret | undefined): Promise<Secret> {
    const { db, clock } = this.#deps;
    const giveUpAt = clock.monotonic() + WAIT_MS;
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(LONGEST_PAUSE_MS, pause * 2)) {
      const sendBefore = clock.monotonic() + LEASE_MS - NEEDED_MS;
      const taking = { company, owner: this.#owner };
      const lease = await takeLease(db, taking);
      if (lease) return this.#refreshUnder(lease, stale, sendBefore);
      const state = await readToken(this.#deps.db, company);
      const token = this.#settled(state, stale);
      if (token) return token;
      if (state.turn === 'held') throw tokensHeld(company);
      const trial = state.turn === 'alone' ? await takeLeaseAlone(db, taking) : undefined;
      if (trial) return this.#refreshUnder(trial, stale, sendBefore).finally(() => this.#endTrial(trial));
      if (clock.monotonic() > giveUpAt) {
        await shortenLease(db, company);
        throw tokenBusy(company);
      }
      await clock.sleep(pause);
    }
  }

  /** Reads after the lease was taken, never before: its last owner may have stored a pair, or the end of the authorization. */
  async #refreshUnder(lease: Lease, stale: Secret | undefined, sendBefore: number): Promise<Secret> {
    const { db, logger } = this.#deps;
    const { company } = lease;
    let attempt: RefreshAttempt;
    try {
      const state = await readToken(this.#deps.db, company);
      const token = this.#settled(state, stale);
      if (token) {
        await releaseLease(db, lease);
        return token;
      }
      if (await adoptSuccessor(this.#deps, state)) {
        await endTrial(db.prisma, lease);
        return this.#refresh(company, stale);
      }
      attempt = new RefreshAttempt(this.#deps, state, sendBefore);
    } catch (error) {
      const isUnreadable = isMusterError(error, 'token_unreadable');
      if (isUnreadable) logger.error({ err: error, ...logFieldsOf(company) }, 'token cannot be read');
      await releaseLease(db, { ...lease, ...(isUnreadable && { retryAfterSeconds: UNREADABLE_PAUSE_SECONDS }) });
      throw error;
    }
    return attempt.make();
  }

  /** Where that fails, the trial is over with its lease. */
  async #endTrial(lease: Lease): Promise<void> {
    await endTrial(this.#deps.db.prisma, lease).catch(() => {});
  }

  /** The token that makes a refresh needless, or undefined; throws when a refresh must not be tried now. */
  #settled(state: StoredToken, stale: Secret | undefined): Secret | undefined {
    if (this.#suffices(state, stale)) return this.#deps.vault.openAccess(state);
    const failing = state.transientFailures > 0 || state.accessToken === null;
    if (!failing || state.due) return undefined;
    throw notYet(state);
  }

  #suffices(state: StoredToken, stale: Secret | undefined): boolean {
    if (!state.usable) return false;
    return stale ? this.#deps.vault.openAccess(state).reveal() !== stale.reveal() : !state.due;
  }
}

function tokensHeld(company: CompanyKey): MusterError {
  return new MusterError(
    'tokens_held',
    `The token of ${describeCompany(company)} is not refreshed now: the service refused those of other companies one after the other, so they may have been spent elsewhere. See the issue tokens_held`,
  );
}

function refusedOnce(company: CompanyKey): MusterError {
  return new MusterError(
    'token_busy',
    `The service answers 401 to everything that is asked of ${describeCompany(company)}, though its token was just renewed; it is asked again before the company must authorize again`,
  );
}

/** The error of the last attempt. Retryable even where that error was not: nothing was tried now, and the next attempt is coming. */
function notYet({ company, lastFailure, lastStatus, lastError, transientFailures, refreshAt }: StoredToken): MusterError {
  const answered =
    lastStatus === null ? '' : `: the token endpoint answered ${answerText({ status: lastStatus, error: lastError })}`;
  const retryAt = refreshAt.toISOString();
  return new MusterError(
    lastFailure ?? 'service_unreachable',
    `The token of ${describeCompany(company)} could not be refreshed${answered}; the next attempt is made at ${retryAt}, or when a sync of the company is asked for`,
    { details: { failures: transientFailures, retry_at: retryAt }, retryable: true },
  );
}
