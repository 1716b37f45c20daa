import { createHmac } from 'node:crypto';
import type { Secret } from '../core/secret.js';

/**
 * Value of the header Muster-Signature: `t=<seconds since the epoch>,v1=<hex>`, an HMAC-SHA256 over "<t>.<body>". The time is
 * signed too, so that a receiver can refuse a message that somebody recorded and sends again much later.
 */
export function signatureOf(body: string, secret: Secret, nowMs: number): string {
  const seconds = Math.floor(nowMs / 1_000);
  return `t=${seconds},v1=${createHmac('sha256', secret.reveal()).update(`${seconds}.${body}`).digest('hex')}`;
}
