import { type CompanyKey, describeCompany, logFieldsOf } from '../core/company.js';
import { type ErrorCode, MusterError } from '../core/errors.js';
import { ofEnvironment } from '../core/provider-settings.js';
import { inQuietHours } from '../core/quiet-hours.js';
import { digest, type Secret } from '../core/secret.js';
import { inTransaction, type Transaction, untilCommitted } from '../db/connection/transaction.js';
import {
  type ConnectionGrant,
  lockConnection,
  lockGrant,
  type ReauthorizationReason,
  recordConnectionGrant,
} from '../db/tables/connections.js';
import { hastenPutOffs, type RefusingAnswer } from '../db/tables/put-off-tokens.js';
import { recordGrant, recordRefusal, wasAttemptedElsewhere } from '../db/tables/refresh-breakers.js';
import { abandonAttempt, beginAttempt, postponeRefresh, withdrawAttempt } from '../db/tables/refresh-leases.js';
import { replaceToken, type StoredToken } from '../db/tables/tokens.js';
import { GrantedToken } from '../http/token-source.js';
import { reauthorizationRequired } from './connections.js';
import { type Dependencies, quarantine, quarantineIn } from './grant-store.js';
import { readToken, tokenBusy } from './read-token.js';
import { NEEDED_MS, patienceSeconds, putOffSeconds, refreshAfterSeconds, retryAfterSeconds } from './refresh-schedule.js';
import type { TokenEndpoint } from './token-endpoint.js';
import { answerText, type Grant, type TokenResponse } from './token-response.js';
import type { TokenPair } from './vault.js';

/**
 * One refresh under a lease: recorded, sent once, and its response stored before it is used. If the process dies in between, the
 * row still records an attempt with an unknown outcome.
 */
export class RefreshAttempt {
  readonly #deps: Dependencies;
  readonly #endpoint: TokenEndpoint;
  readonly #company: CompanyKey;
  readonly #state: StoredToken;
  readonly #refreshToken: Secret;
  readonly #sendBefore: number;
  readonly #stopping: AbortSignal;
  /** An attempt with this refresh token has an unknown outcome. */
  #isUnanswered: boolean;

  /**
   * `sendBefore` is a time of the monotonic clock. Once `stopping` aborts, the refresh token is not sent. Throws `environment_not_configured` and `token_unreadable`.
   */
  constructor(
    deps: Dependencies,
    state: StoredToken,
    { sendBefore, stopping }: { readonly sendBefore: number; readonly stopping: AbortSignal },
  ) {
    this.#deps = deps;
    this.#endpoint = ofEnvironment(deps.endpoints, state.company.environment);
    this.#company = state.company;
    this.#state = state;
    this.#refreshToken = deps.vault.openRefresh(state);
    this.#sendBefore = sendBefore;
    this.#stopping = stopping;
    this.#isUnanswered = state.isUnanswered;
  }

  async make(): Promise<Secret> {
    const { db, clock } = this.#deps;
    await this.#requireMaySend();
    const begun = await beginAttempt(db, { ...this.#state, neededMs: NEEDED_MS });
    if (!begun) throw tokenBusy(this.#company);
    // The database has just checked the lease by its own clock; this catches a process that was frozen since.
    if (clock.monotonic() > this.#sendBefore) {
      await this.#postpone('token_busy', { delaySeconds: this.#delaySeconds() });
      throw tokenBusy(this.#company);
    }
    // Quiet hours or a stop may have begun just now.
    await this.#requireMaySend();
    const sentAt = clock.monotonic();
    const answer = await this.#endpoint.refresh(this.#refreshToken);
    this.#deps.work?.tokenRefreshed(this.#company.environment, answer.kind);
    return this.#conclude(answer, sentAt);
  }

  /** Gives the lease back and throws: `stopping` in a process that stops; `quiet_hours` in quiet hours, to whose end it puts the refresh off. */
  async #requireMaySend(): Promise<void> {
    const { db, clock, quiet } = this.#deps;
    const attempt = { ...this.#state, isUnanswered: this.#isUnanswered };
    if (this.#stopping.aborted) {
      await untilCommitted(() => withdrawAttempt(db, attempt));
      throw this.#stopping.reason;
    }
    const end = quiet?.endOf(this.#state.quietHours, clock.now());
    if (end === undefined) return;
    const quietUntil = new Date(end);
    await untilCommitted(() => withdrawAttempt(db, attempt, quietUntil));
    throw inQuietHours(end);
  }

  async #conclude(answer: TokenResponse, sentAt: number): Promise<Secret> {
    switch (answer.kind) {
      case 'granted':
        return this.#keep(answer, sentAt);
      case 'refused':
        return this.#abandon(this.#isUnanswered ? 'refresh_outcome_unknown' : 'token_refused', answer);
      case 'malformed':
        if (answer.refusal || answer.refreshToken.reveal() === this.#refreshToken.reveal()) return this.#keepOld(answer, sentAt);
        await this.#store(
          { accessToken: undefined, refreshToken: answer.refreshToken, lifetimeSeconds: 0, refreshAfterSeconds: 60 },
          sentAt,
        );
        throw this.#failed('service_error', 'it granted no usable access token; the refresh token was kept');
      case 'unexplained':
        return this.#putOff('service_refused', 'which does not blame the token; it is kept and sent again later', answer);
      case 'client_refused':
        return this.#retryLater('service_refused', 'check client id, client secret and auth URL', answer);
      case 'transient':
        return this.#retryLater(answer.status === 429 ? 'service_throttled' : 'service_error', 'it is asked again soon', answer);
      case 'unreachable':
        return this.#retryLater('service_unreachable', `it cannot be reached: ${answer.cause.message}`, answer);
      case 'ambiguous': {
        this.#isUnanswered = true;
        const late = answer.cause?.code === 'service_timeout';
        return this.#putOff(late ? 'service_timeout' : 'service_unreachable', 'it gave no readable answer', answer);
      }
    }
  }

  /** A refresh token that comes with an error may be anything. It must not replace a good one, so it goes to quarantine, where a person can find it. */
  async #keepOld({ refusal, refreshToken, ...answer }: Answer<'malformed'>, sentAt: number): Promise<Secret> {
    if (!refusal) return this.#conclude({ ...answer, kind: 'ambiguous' }, sentAt);
    const origin = { since: this.#state.readAt };
    await quarantine(this.#deps, { company: this.#company, reason: 'unusable_grant', refreshToken, origin });
    return this.#conclude(refusal, sentAt);
  }

  async #keep(grant: Grant, sentAt: number): Promise<Secret> {
    const { refreshMarginSeconds, random = Math.random, logger } = this.#deps;
    const { companyId = this.#company.companyId, refreshToken, lifetimeSeconds } = grant;
    if (companyId !== this.#company.companyId) {
      const [other, origin] = [{ ...this.#company, companyId }, { since: this.#state.readAt }];
      if (refreshToken) await quarantine(this.#deps, { company: other, reason: 'another_company', refreshToken, origin });
      return this.#abandon('token_for_another_company');
    }
    const stored = await this.#store(
      {
        accessToken: grant.accessToken,
        refreshToken: refreshToken ?? this.#refreshToken,
        lifetimeSeconds,
        refreshAfterSeconds: refreshAfterSeconds(lifetimeSeconds, refreshMarginSeconds, random()),
      },
      sentAt,
    );
    // The service grants again, which may help others.
    await hastenPutOffs(this.#deps.db.prisma, this.#company).catch(() => {});
    if (!stored) return this.#newest();
    logger.debug({ ...logFieldsOf(this.#company), lifetimeSeconds }, 'token refreshed');
    return new GrantedToken(grant.accessToken.reveal(), stored.grantNumber);
  }

  /**
   * Stores the pair and returns its grant; undefined if the company was removed or has authorized again, and then the pair is quarantined. The pair's
   * times count from the request, because the database may be slow. Throws `token_not_stored`.
   */
  async #store(pair: TokenPair, sentAt: number): Promise<{ readonly grantNumber: number } | undefined> {
    const { db, vault, connections, clock, received, journal } = this.#deps;
    const company = this.#company;
    const sealed = vault.seal(company, pair);
    const origin = { since: this.#state.readAt, successorOf: digest(this.#refreshToken.reveal()) };
    const setAside = (tx: Transaction, reason: 'overtaken' | 'not_stored') =>
      quarantineIn(this.#deps, tx, { company, reason, refreshToken: pair.refreshToken, origin });
    const store = async (tx: Transaction) => {
      const grant = await lockGrant(tx, company);
      if (!grant) return undefined;
      const waited = (clock.monotonic() - sentAt) / 1000;
      const lifetimeSeconds = Math.max(0, sealed.lifetimeSeconds - waited);
      const refreshAfter = Math.max(0, sealed.refreshAfterSeconds - waited);
      const aged = { ...sealed, lifetimeSeconds, refreshAfterSeconds: refreshAfter };
      const epoch = await replaceToken(tx, { spent: this.#state, pair: aged });
      await recordGrant(tx, this.#state);
      if (epoch === undefined && pair.refreshToken !== this.#refreshToken) await setAside(tx, 'overtaken');
      // Another process had the lease since, and may have given this answer up for lost.
      if (epoch !== undefined && epoch !== this.#state.epoch + 1n) await connections.regain(company, tx);
      return epoch === undefined ? undefined : { grantNumber: await this.#recordGrant(tx, grant, pair.accessToken) };
    };
    await journal?.append(company, origin.since, pair.refreshToken);
    return received.keep({
      company,
      store: () => inTransaction(db, store),
      setAside: () => inTransaction(db, (tx) => setAside(tx, 'not_stored')),
      successorOf: origin.successorOf,
    });
  }

  /** A refresh keeps the grant, unless the access token has other claims. Returns the grant's number. */
  async #recordGrant(tx: Transaction, known: ConnectionGrant, accessToken: Secret | undefined): Promise<number> {
    const { vault, logger } = this.#deps;
    const company = this.#company;
    const reading = accessToken && vault.readGrant(company, accessToken, known.grantClaims);
    if (reading?.claims === undefined || reading.claims === known.grantClaims) return known.grantNumber;
    const isNew = reading.isSame === false;
    if (isNew) logger.warn(logFieldsOf(company), 'the access token names another person or other rights than before');
    return recordConnectionGrant(tx, { company, isNew, claims: reading.claims });
  }

  /**
   * Ends the authorization, unless a newer pair was stored since this attempt began: then that one is returned. `answer`: the refusal of the service, if there
   * was one. Retries while the database is unavailable, because a refusal that is not recorded would be provoked again.
   */
  async #abandon(reason: ReauthorizationReason, answer?: RefusingAnswer): Promise<Secret> {
    const { db, connections, logger } = this.#deps;
    let opened = false;
    const abandoned = await untilCommitted(() =>
      inTransaction(db, async (tx) => {
        if (!(await lockConnection(tx, this.#company))) return false;
        const isExplained = reason !== 'token_refused' && !(answer && (await wasAttemptedElsewhere(tx, this.#company)));
        if (!(await abandonAttempt(tx, { ...this.#state, answer: answer ?? {} }))) return false;
        await connections.requireReauthorization(this.#company, reason, tx);
        opened = !isExplained && (await recordRefusal(tx, this.#state));
        return true;
      }),
    );
    if (!abandoned) return this.#newest();
    logger.warn({ ...logFieldsOf(this.#company), reason, ...answeredFields(answer) }, 'company must authorize again');
    if (opened)
      logger.error(
        { environment: this.#company.environment },
        'the service refuses the tokens of several companies: all others are held',
      );
    throw reauthorizationRequired(this.#company, reason);
  }

  async #newest(): Promise<Secret> {
    const state = await readToken(this.#deps.db, this.#company);
    if (!state.usable) throw tokenBusy(this.#company);
    return this.#deps.vault.openAccess(state);
  }

  /** Each such answer in a row postpones the next attempt for longer. */
  async #putOff(code: ErrorCode, problem: string, answer: Failure): Promise<never> {
    const { random = Math.random } = this.#deps;
    const putOffs = this.#state.putOffs + 1;
    const isLost = answer.kind === 'ambiguous';
    const delaySeconds = putOffSeconds(putOffs, { isLost, askedMs: answer.retryAfterMs, random: random() });
    await this.#postpone(code, { delaySeconds, putOffs, answer });
    throw this.#failed(code, problem, answer);
  }

  async #retryLater(code: ErrorCode, problem: string, answer: Failure): Promise<never> {
    await this.#postpone(code, { delaySeconds: this.#delaySeconds(answer.retryAfterMs), answer });
    throw this.#failed(code, problem, answer);
  }

  #delaySeconds(askedMs?: number): number {
    const { random = Math.random } = this.#deps;
    return retryAfterSeconds(this.#state.transientFailures + 1, askedMs, random());
  }

  /** Retries until it is recorded, because an attempt without an outcome would count against the company. */
  async #postpone(
    failure: ErrorCode,
    outcome: { delaySeconds: number; putOffs?: number; answer?: Partial<Failure> },
  ): Promise<void> {
    const { putOffs = this.#state.putOffs, answer = {}, delaySeconds } = outcome;
    const isUnanswered = this.#isUnanswered;
    const notBeforeSeconds = patienceSeconds(putOffs, answer.retryAfterMs);
    const times = { retryAfterSeconds: delaySeconds, notBeforeSeconds };
    await untilCommitted(() =>
      postponeRefresh(this.#deps.db, { ...this.#state, failure, isUnanswered, putOffs, answer, ...times }),
    );
  }

  /** Retryable, whatever the code, because the next attempt will follow. */
  #failed(code: ErrorCode, problem: string, answer: Partial<Failure> = {}): MusterError {
    const failures = this.#state.transientFailures + 1;
    const { status, error, cause } = answer;
    const answered = status === undefined ? '' : `The token endpoint answered ${answerText({ status, error })}: `;
    const failed = new MusterError(
      code,
      `The authorization server did not refresh the token of ${describeCompany(this.#company)}. ${answered}${problem}`,
      { cause, retryable: true, details: { failures, ...answeredFields(answer) } },
    );
    this.#deps.logger.warn({ err: failed, ...logFieldsOf(this.#company), ...answeredFields(answer) }, 'token not refreshed');
    return failed;
  }
}

type Answer<Kind extends TokenResponse['kind']> = Extract<TokenResponse, { kind: Kind }>;

/** A response that granted nothing, or no response. */
type Failure = RefusingAnswer & {
  readonly kind: TokenResponse['kind'];
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
};

/** The service's answer, for the log. The name is `answered_error`, because pino uses `error` for errors. */
function answeredFields({ status, error }: RefusingAnswer = {}) {
  return { ...(status !== undefined && { answered_status: status }), ...(error !== undefined && { answered_error: error }) };
}
