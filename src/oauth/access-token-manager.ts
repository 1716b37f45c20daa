import { randomUUID } from 'node:crypto';
import { type CompanyKey, companyNotFound, describeCompany, keyText, logFieldsOf } from '../core/company.js';
import { isMusterError, MusterError } from '../core/errors.js';
import type { Secret } from '../core/secret.js';
import { withDatabaseErrors } from '../db/connection/sql-state.js';
import { inTransaction } from '../db/connection/transaction.js';
import { lockConnection } from '../db/tables/connections.js';
import { putOffDueRefreshes } from '../db/tables/quiet-tokens.js';
import { endTrial } from '../db/tables/refresh-breakers.js';
import { releaseLease, shortenLease, takeLease, takeLeaseAlone } from '../db/tables/refresh-leases.js';
import { recordRefused } from '../db/tables/refused-tokens.js';
import { findDueTokens, findToken, LEASE_MS, type Lease, type StoredToken } from '../db/tables/tokens.js';
import { recordPathOf, type TokenSource } from '../http/token-source.js';
import { adoptSuccessor } from './adopt-successor.js';
import type { Dependencies } from './grant-store.js';
import { readToken, tokenBusy } from './read-token.js';
import { RefreshAttempt } from './refresh-attempt.js';
import { NEEDED_MS, UNREADABLE_PAUSE_SECONDS } from './refresh-schedule.js';
import { KnownEvidence } from './token-evidence.js';
import { answerText } from './token-response.js';

/** Longer than a lease, so that a waiting caller outlasts a lease whose owner crashed. */
const WAIT_MS = LEASE_MS + 5_000;
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 250;
/**
 * A token is reused this long without reading its row: a fast list needs a token hundreds of times a second, and the run of a small company
 * should read it once. A token counts as unusable ten times this long before it expires, so a reused one is still valid.
 */
const SAME_TOKEN_MS = 500;

/** A running refresh in this process, and the access token that it is to replace. */
interface Flight {
  readonly stale: string | undefined;
  readonly token: Promise<Secret>;
}

/**
 * Provides and refreshes the access tokens of all companies. However many requests, workers and machines need the same company's token
 * at once, only one of them sends the refresh token: within a process they share one promise, and across processes a lease
 * on the row decides. All others wait, and read the stored token.
 */
export class AccessTokenManager {
  readonly #deps: Dependencies;
  readonly #owner = randomUUID();
  readonly #flights = new Map<string, Flight>();
  readonly #evidence: KnownEvidence;
  readonly #stopping = new AbortController();

  constructor(deps: Dependencies) {
    this.#deps = deps;
    this.#evidence = new KnownEvidence(deps.db);
  }

  /**
   * The token source of one company. Besides `reauthorization_required` its calls throw `company_not_found`, `token_unreadable`,
   * `environment_not_configured`, `service_refused` (our client credentials), and, as retryable errors, `database_unavailable`,
   * `token_busy`, `tokens_held`, and while the authorization server fails `service_unreachable`, `service_timeout`, `service_error`,
   * `service_throttled`; and `stopping` once it refreshes no more. Until the next attempt each call throws the error of the last one, as retryable.
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

  /** Refreshes the company's token if it is still due. Throws like a token source. */
  async refresh(company: CompanyKey): Promise<void> {
    const state = await withDatabaseErrors(readToken(this.#deps.db, company));
    if (state.due) await withDatabaseErrors(this.#share(company, undefined));
  }

  /**
   * Companies whose token is due for a refresh, the longest due first. They include paused companies, because a refresh token may
   * expire unused and resuming must work, but never a company that must authorize again. In quiet hours it puts due refreshes off to their end.
   */
  async due(limit: number): Promise<CompanyKey[]> {
    const { db, endpoints, clock, quiet } = this.#deps;
    const environments = Object.keys(endpoints);
    for (;;) {
      const due = await withDatabaseErrors(findDueTokens(db, { environments, limit }));
      const now = clock.now();
      const judged = due.map(({ quietHours, ...company }) => ({ company, end: quiet?.endOf(quietHours, now) }));
      const inQuiet = judged.flatMap(({ company, end }) =>
        end === undefined ? [] : [{ ...company, quietUntil: new Date(end) }],
      );
      const putOff = inQuiet.length > 0 ? await withDatabaseErrors(putOffDueRefreshes(db, inQuiet)) : 0;
      // Companies that follow a whole batch in quiet hours must not wait for their end.
      if (due.length < limit || putOff === 0) return judged.flatMap(({ company, end }) => (end === undefined ? [company] : []));
    }
  }

  /** From the call on no refresh token is sent, and none of another process is waited for: callers get `stopping`. One that is under way goes on. */
  stopRefreshing(): void {
    this.#stopping.abort(new MusterError('stopping', 'No token is refreshed any more: the process is being stopped.'));
  }

  /** Resolves when this process runs no refresh, and will run none. Await it before you close the database, since a pair that comes later would be lost. */
  async settle(): Promise<void> {
    this.stopRefreshing();
    await Promise.allSettled([...this.#flights.values()].map(({ token }) => token));
  }

  async #get(company: CompanyKey): Promise<Secret> {
    const state = await readToken(this.#deps.db, company);
    if (state.isRefused) this.#evidence.recordRefused(company);
    if (!state.usable) return this.#share(company, undefined);
    const token = this.#deps.vault.openAccess(state);
    if (!state.due) return token;
    // An early refresh may fail without harm: the current token works until it expires.
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
   * Ends the authorization only at a second refusal half a minute later, with none of the company's tokens accepted in between. Otherwise throws `token_busy`:
   * a token that is old or not the newest may be refused for that, and the API may refuse everything for some seconds.
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
        return 'recorded';
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
   * Runs one refresh at a time per company in this process. A running refresh with another reason may return the stale token itself; then another one follows. If a
   * refresh made to replace the stale token returns it, that is final.
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

  /** Refreshes once it has the lease, or takes the token that another owner of the lease has stored. */
  async #refresh(company: CompanyKey, stale: Secret | undefined): Promise<Secret> {
    const { db, clock } = this.#deps;
    const giveUpAt = clock.monotonic() + WAIT_MS;
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(LONGEST_PAUSE_MS, pause * 2)) {
      this.#stopping.signal.throwIfAborted();
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

  /** The state must be read after the lease was taken: its last owner may have stored a pair, or the end of the authorization. */
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
      attempt = new RefreshAttempt(this.#deps, state, { sendBefore, stopping: this.#stopping.signal });
    } catch (error) {
      const isUnreadable = isMusterError(error, 'token_unreadable');
      if (isUnreadable) logger.error({ err: error, ...logFieldsOf(company) }, 'token cannot be read');
      await releaseLease(db, { ...lease, ...(isUnreadable && { retryAfterSeconds: UNREADABLE_PAUSE_SECONDS }) });
      throw error;
    }
    return attempt.make();
  }

  /** If this fails, the trial ends with its lease. */
  async #endTrial(lease: Lease): Promise<void> {
    await endTrial(this.#deps.db.prisma, lease).catch(() => {});
  }

  /** Returns a token that makes the refresh unnecessary, or undefined. Throws if no refresh may be tried now. */
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
    `The token of ${describeCompany(company)} is not refreshed now: the service refused the tokens of several other companies, so another installation may have used them. See the issue tokens_held`,
  );
}

function refusedOnce(company: CompanyKey): MusterError {
  return new MusterError(
    'token_busy',
    `The service answers 401 to all requests for ${describeCompany(company)}, though its token was just renewed; Muster tries once more before the company must authorize again`,
  );
}

/** The error of the last attempt. Always retryable, because nothing was tried now and the next attempt will follow. */
function notYet({ company, lastFailure, lastStatus, lastError, transientFailures, refreshAt }: StoredToken): MusterError {
  const answered =
    lastStatus === null ? '' : `: the token endpoint answered ${answerText({ status: lastStatus, error: lastError })}`;
  const retryAt = refreshAt.toISOString();
  return new MusterError(
    lastFailure ?? 'service_unreachable',
    `The token of ${describeCompany(company)} could not be refreshed${answered}; the next attempt is made at ${retryAt}, or when a sync of the company is requested`,
    { details: { failures: transientFailures, retry_at: retryAt }, retryable: true },
  );
}
