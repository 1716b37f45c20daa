import type { CompanyKey } from '../core/company.js';
import type { Logger } from '../observability/logger.js';
import type { ClaimedNotification, Outbox } from './outbox.js';
import { payloadOf } from './payload.js';
import { retryDelay } from './retry-delay.js';
import type { DeliveryOutcome, Webhook } from './webhook.js';

export interface DelivererParts {
  readonly outbox: Outbox;
  /** Undefined: nobody is told; what happened is recorded and can be listed. */
  readonly webhook: Webhook | undefined;
  readonly publicUrl: URL;
  /** Where a person starts to authorize the company again. */
  authorizeUrl(company: CompanyKey): Promise<string | undefined> | string | undefined;
  readonly logger: Logger;
  /** 0 to 1; Math.random unless a test owns it. */
  readonly random?: () => number;
}

/** Sends what the outbox holds: at least once each, and the same id every time. */
export class Deliverer {
  readonly #parts: DelivererParts;

  constructor(parts: DelivererParts) {
    this.#parts = parts;
  }

  /** What is to be delivered now; none without a webhook. */
  async due(limit: number): Promise<{ id: string; attempts: number }[]> {
    return this.#parts.webhook ? this.#parts.outbox.due(limit) : [];
  }

  /** One attempt, if it is due and nobody else makes it. An attempt that `signal` interrupts does not count. */
  async deliver(id: string, signal?: AbortSignal): Promise<void> {
    const { outbox, webhook } = this.#parts;
    if (!webhook || signal?.aborted) return;
    const claimed = await outbox.claim(id);
    if (!claimed) return;
    try {
      await this.#conclude(claimed, await webhook.post(id, await this.#payload(claimed), signal));
    } catch (error) {
      if (!signal?.aborted) throw error;
      await outbox.giveBack(claimed);
    }
  }

  tidy(): Promise<void> {
    return this.#parts.outbox.tidy();
  }

  async #payload(claimed: ClaimedNotification): Promise<string> {
    const { publicUrl, authorizeUrl, logger } = this.#parts;
    const { environment, companyId, type, mustAuthorize } = claimed;
    // Not for a company that has authorized meanwhile: the link would only mislead.
    if (type !== 'reauthorization_required' || !mustAuthorize) return payloadOf(claimed, { publicUrl });
    try {
      return payloadOf(claimed, { publicUrl, authorizeUrl: await authorizeUrl({ environment, companyId }) });
    } catch (error) {
      // To know without a link is better than not to know.
      logger.warn({ err: error, environment, company_id: companyId }, 'no link to authorize again could be made');
      return payloadOf(claimed, { publicUrl });
    }
  }

  async #conclude(claimed: ClaimedNotification, outcome: DeliveryOutcome): Promise<void> {
    const { outbox, logger, random = Math.random } = this.#parts;
    const { id, type, attempts } = claimed;
    if (outcome.delivered) {
      await outbox.delivered(claimed);
      logger.info({ event_id: id, type, attempts }, 'notification delivered');
      return;
    }
    const delay = retryDelay(outcome.error, attempts, random(), outcome.retryAfterMs);
    await outbox.refused(claimed, outcome.error, delay);
    const facts = { event_id: id, type, attempts, ...outcome.error };
    if (delay === undefined) logger.error(facts, 'notification given up');
    else logger.warn({ ...facts, retry_in_seconds: Math.round(delay) }, 'notification not delivered');
  }
}
