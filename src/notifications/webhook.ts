import { createHmac } from 'node:crypto';
import { Agent, request } from 'undici';
import type { Clock } from '../core/clock.js';
import type { Secret } from '../core/secret.js';
import type { DeliveryError } from '../db/tables/notifications.js';
import { parseRetryAfter } from '../http/retry-after.js';
import { registerSecret } from '../observability/secret-registry.js';

export interface WebhookSettings {
  readonly url: URL;
  readonly secret: Secret;
}

/** What came of one attempt: taken, or why not. */
export type DeliveryOutcome =
  | { readonly delivered: true }
  | { readonly delivered: false; readonly error: DeliveryError; readonly retryAfterMs?: number | undefined };

/** For one attempt, from the connection to the status line. Whoever needs longer answers first and works later. */
const DEADLINE_MS = 10_000;
const CONNECT_TIMEOUT_MS = 5_000;

/** The receiver of notifications. A status of 2xx is a receipt; a body is nothing to us, and a redirect is followed nowhere. */
export class Webhook {
  readonly #settings: WebhookSettings;
  readonly #clock: Clock;
  readonly #deadlineMs: number;
  /** No connection is kept: there are hours between two events, and one that hangs holds up nobody else. */
  readonly #agent = new Agent({ connect: { timeout: CONNECT_TIMEOUT_MS }, pipelining: 0, maxHeaderSize: 16_384 });

  constructor(settings: WebhookSettings, clock: Clock, { deadlineMs = DEADLINE_MS }: { deadlineMs?: number } = {}) {
    this.#settings = settings;
    this.#clock = clock;
    this.#deadlineMs = deadlineMs;
    // Its address, too, may be all that is needed to write there.
    for (const value of [settings.secret.reveal(), settings.url.href]) registerSecret(value, { lasting: true });
  }

  /** Sends once. Rejects only with the signal's reason. */
  async post(eventId: string, body: string, signal?: AbortSignal): Promise<DeliveryOutcome> {
    signal?.throwIfAborted();
    const late = AbortSignal.timeout(this.#deadlineMs);
    const ended = signal ? AbortSignal.any([late, signal]) : late;
    try {
      // The race, because undici looks at a signal only once the request has its connection.
      return await Promise.race([this.#exchange(eventId, body, ended), rejection(ended)]);
    } catch (error) {
      signal?.throwIfAborted();
      return { delivered: false, error: describe(error, late.aborted) };
    }
  }

  /** Ends what is under way. */
  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  async #exchange(eventId: string, body: string, signal: AbortSignal): Promise<DeliveryOutcome> {
    const { url, secret } = this.#settings;
    const response = await request(url, {
      method: 'POST',
      dispatcher: this.#agent,
      signal,
      body,
      headers: {
        'content-type': 'application/json',
        'user-agent': 'muster',
        'muster-event-id': eventId,
        'muster-signature': signatureOf(body, secret, this.#clock.now()),
      },
    });
    response.body.on('error', () => {}).destroy();
    const { statusCode: status, headers } = response;
    if (status >= 200 && status < 300) return { delivered: true };
    const retryAfterMs = parseRetryAfter([headers['retry-after']].flat()[0], this.#clock.now());
    return { delivered: false, error: { code: 'answered', status }, retryAfterMs };
  }
}

function describe(error: unknown, isLate: boolean): DeliveryError {
  const { code: cause = '' } = error as NodeJS.ErrnoException;
  if (isLate || /^UND_ERR_.*_TIMEOUT$/.test(cause)) return { code: 'timeout' };
  return { code: 'unreachable', ...(/^[A-Z0-9_]{1,64}$/.test(cause) && { cause }) };
}

function rejection(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
}

/**
 * Value of the header Muster-Signature: `t=<seconds since the epoch>,v1=<hex>`, an HMAC-SHA256 over "<t>.<body>". The time is
 * signed too, so that a receiver can refuse a message that somebody recorded and sends again much later.
 */
function signatureOf(body: string, secret: Secret, nowMs: number): string {
  const seconds = Math.floor(nowMs / 1_000);
  return `t=${seconds},v1=${createHmac('sha256', secret.reveal()).update(`${seconds}.${body}`).digest('hex')}`;
}
