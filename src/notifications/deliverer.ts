import type { CompanyKey } from '../core/company.js';
import { withoutSlash } from '../core/own-address.js';
import type { Database } from '../db/connection/database.js';
import {
  type ClaimedNotification,
  claimNotification,
  type DeliveryClaim,
  type DeliveryError,
  expireNotifications,
  findDueNotifications,
  markDelivered,
  markRefused,
  releaseNotification,
  removeOldNotifications,
} from '../db/tables/notifications.js';
import { recordNotTaken, recordTaken } from '../db/tables/webhook.js';
import type { Logger } from '../observability/logger.js';
import type { WorkMetrics } from '../observability/work-metrics.js';
import type { DeliveryOutcome, Webhook } from './webhook.js';

export interface DelivererDependencies {
  readonly db: Database;
  /** Undefined: nothing is sent, but events are still recorded and can be listed. */
  readonly webhook: Webhook | undefined;
  readonly publicUrl: URL;
  /** The link with which a person authorizes the company again. It is made on delivery, because links expire. */
  authorizeUrl(company: CompanyKey): Promise<string | undefined> | string | undefined;
  readonly logger: Logger;
  readonly work?: WorkMetrics | undefined;
  /** 0 to 1; Math.random unless a test owns it. */
  readonly random?: () => number;
}

/** Days that a notification is kept. */
const RETENTION_DAYS = 90;

/** Notifications removed by one transaction. */
const REMOVED_AT_ONCE = 1_000;

const MINUTE = 60;
const HOUR = 60 * MINUTE;

/** Seconds between attempts. They add up to a day: a receiver that is down for less still gets everything. */
const DELAYS = [5, 15, MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR / 2, HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, 8 * HOUR];

/**
 * Waiting rarely ends a refusal, but it may: the receiver is being deployed, or its secret changed. Refusals are therefore
 * retried for an hour, not for a day.
 */
const DELAYS_OF_REFUSAL = DELAYS.slice(0, 6);

const LONGEST_ASKED = HOUR;

/** Sends each recorded event at least once, with the same id every time. */
export class Deliverer {
  readonly #deps: DelivererDependencies;

  constructor(deps: DelivererDependencies) {
    this.#deps = deps;
  }

  /** Notifications that are due; none without a webhook. */
  async due(limit: number): Promise<DeliveryClaim[]> {
    return this.#deps.webhook ? findDueNotifications(this.#deps.db, { limit }) : [];
  }

  /** Makes one attempt, if it is due and no other process makes it. An attempt that `signal` interrupts does not count. */
  async deliver(id: string, signal?: AbortSignal): Promise<void> {
    const { db, webhook } = this.#deps;
    if (!webhook || signal?.aborted) return;
    const claimed = await claimNotification(db, { id });
    if (!claimed) return;
    try {
      await this.#conclude(claimed, await webhook.post(id, await this.#payload(claimed), signal));
    } catch (error) {
      if (!signal?.aborted) throw error;
      await releaseNotification(db, claimed);
    }
  }

  async tidy(): Promise<void> {
    await expireNotifications(this.#deps.db);
    while ((await removeOldNotifications(this.#deps.db, { days: RETENTION_DAYS, limit: REMOVED_AT_ONCE })) === REMOVED_AT_ONCE);
  }

  async #payload(claimed: ClaimedNotification): Promise<string> {
    const { publicUrl, authorizeUrl, logger } = this.#deps;
    const { environment, companyId, type, mustAuthorize } = claimed;
    // A company that has authorized since gets no link, because it would mislead.
    if (type !== 'reauthorization_required' || !mustAuthorize || companyId === null) return payloadOf(claimed, publicUrl);
    try {
      return payloadOf(claimed, publicUrl, await authorizeUrl({ environment, companyId }));
    } catch (error) {
      // A notification without a link is better than none.
      logger.warn({ err: error, environment, company_id: companyId }, 'no link to authorize again could be made');
      return payloadOf(claimed, publicUrl);
    }
  }

  async #conclude(claimed: ClaimedNotification, outcome: DeliveryOutcome): Promise<void> {
    const { db, logger, work, random = Math.random } = this.#deps;
    const { id, type, attempts } = claimed;
    work?.webhookAsked(outcome.delivered ? 'delivered' : 'failed');
    if (outcome.delivered) {
      await markDelivered(db, { id });
      await recordTaken(db);
      logger.info({ event_id: id, type, attempts }, 'notification delivered');
      return;
    }
    const { error, retryAfterMs } = outcome;
    const delaySeconds = retryDelay(error, attempts, random(), retryAfterMs);
    await markRefused(db, { id, attempts, error, delaySeconds: delaySeconds ?? null });
    await recordNotTaken(db, error);
    // The log redacts `code` unless it is an error code, because an authorization code has the same name.
    const { code: reason, ...more } = error;
    const facts = { event_id: id, type, attempts, reason, ...more };
    if (delaySeconds === undefined) logger.error(facts, 'notification given up');
    else logger.warn({ ...facts, retry_in_seconds: Math.round(delaySeconds) }, 'notification not delivered');
  }
}

/** Seconds until the next attempt after `attempts` failures; undefined: no more. `random` is 0 to 1. */
function retryDelay(
  { status }: DeliveryError,
  attempts: number,
  random: number,
  retryAfterMs: number | undefined,
): number | undefined {
  // 410: the receiver is gone permanently.
  if (status === 410) return undefined;
  const delay = (isRefusal(status) ? DELAYS_OF_REFUSAL : DELAYS)[attempts - 1];
  if (delay === undefined) return undefined;
  const asked = Math.min(LONGEST_ASKED, (retryAfterMs ?? 0) / 1_000);
  // Spread the delays, so that deliveries that failed together are not retried together.
  return Math.max(delay * (0.8 + 0.4 * random), asked);
}

function isRefusal(status: number | undefined): boolean {
  return status !== undefined && status >= 300 && status < 500 && status !== 408 && status !== 429;
}

/** The JSON that is sent. It holds no secrets, but `authorize_url` is meant only for people who may act for the company. */
function payloadOf(claimed: ClaimedNotification, publicUrl: URL, authorizeUrl?: string): string {
  const { id, type, occurredAt, environment, companyId, companyName, details } = claimed;
  return JSON.stringify({
    id,
    type,
    occurred_at: occurredAt.toISOString(),
    environment,
    ...(companyId !== null && { company_id: companyId }),
    ...(companyName !== null && { company_name: companyName }),
    ...details,
    ...(authorizeUrl !== undefined && { authorize_url: authorizeUrl }),
    admin_url: `${withoutSlash(publicUrl)}${adminPath(claimed)}`,
  });
}

function adminPath({ type, environment, companyId, details }: ClaimedNotification): string {
  if (type === 'test') return '/api/notifications?type=test';
  if (type === 'deletions_held') return '/api/holds?status=open';
  if (type === 'schema_changed') return `/api/schema?resource=${details.resource}`;
  if (details.issue_id !== undefined) return `/api/issues/${details.issue_id}`;
  return details.run_id === undefined ? `/api/companies/${environment}/${companyId}` : `/api/runs/${details.run_id}`;
}
