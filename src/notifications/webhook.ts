import { createHmac } from 'node:crypto';
import type { Clock } from '../core/clock.js';
import type { Secret } from '../core/secret.js';
import type { DeliveryError } from '../db/tables/notifications.js';
import type { Proxies } from '../http/proxy/proxies.js';
import { parseRetryAfter } from '../http/retry-after.js';
import { registerSecret } from '../observability/secret-registry.js';
import { OutgoingRequests } from './outgoing-requests.js';

export interface WebhookSettings {
  readonly url: URL;
  readonly secret: Secret;
}

/** The outcome of one attempt. */
export type DeliveryOutcome =
  | { readonly delivered: true }
  | { readonly delivered: false; readonly error: DeliveryError; readonly retryAfterMs?: number | undefined };

/** The receiver of notifications. A status of 2xx confirms delivery. */
export class Webhook {
  readonly #settings: WebhookSettings;
  readonly #clock: Clock;
  readonly #requests: OutgoingRequests;

  /** `deadlineMs`: limit for one attempt. */
  constructor(settings: WebhookSettings, clock: Clock, options: { deadlineMs?: number; proxies?: Proxies } = {}) {
    this.#settings = settings;
    this.#clock = clock;
    this.#requests = new OutgoingRequests(options);
    // The address, too, may be all that is needed to write there.
    for (const value of [settings.secret.reveal(), settings.url.href]) registerSecret(value, { lasting: true });
  }

  /** Sends once. Rejects only with the signal's reason. */
  async post(eventId: string, body: string, signal?: AbortSignal): Promise<DeliveryOutcome> {
    const { url, secret } = this.#settings;
    const headers = {
      'content-type': 'application/json',
      'muster-event-id': eventId,
      'muster-signature': signatureOf(body, secret, this.#clock.now()),
    };
    const outcome = await this.#requests.send(url, { method: 'POST', body, headers }, signal);
    if ('error' in outcome) return { delivered: false, error: outcome.error };
    const { status } = outcome;
    if (status >= 200 && status < 300) return { delivered: true };
    const retryAfterMs = parseRetryAfter([outcome.headers['retry-after']].flat()[0], this.#clock.now());
    return { delivered: false, error: { code: 'answered', status }, retryAfterMs };
  }

  /** Ends running requests. */
  close(): Promise<void> {
    return this.#requests.close();
  }
}

/**
 * Value of the header Muster-Signature: `t=<seconds since the epoch>,v1=<hex>`, an HMAC-SHA256 over "<t>.<body>". The time is
 * signed too, so that a receiver can refuse a message that was recorded and is replayed later.
 */
function signatureOf(body: string, secret: Secret, nowMs: number): string {
  const seconds = Math.floor(nowMs / 1_000);
  return `t=${seconds},v1=${createHmac('sha256', secret.reveal()).update(`${seconds}.${body}`).digest('hex')}`;
}
