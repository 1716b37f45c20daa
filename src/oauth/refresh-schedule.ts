import { LONGEST_PUT_OFF_SECONDS, LONGEST_RETRY_AFTER_SECONDS } from '../db/tables/tokens.js';
import { TOKEN_DEADLINE_MS } from './token-endpoint.js';

const SHORTEST_MARGIN_SECONDS = 60;
const FIRST_RETRY_SECONDS = 2;
const LONGEST_RETRY_SECONDS = 300;
/** Delays after errors without an explanation, which leave the token valid. The last delay repeats. */
const AFTER_ERROR_SECONDS = [10, 60, 300, 1_800, LONGEST_PUT_OFF_SECONDS];
/** After a lost answer the token may be used up, and a service may treat its repetition as theft, so the delays are longer. */
const AFTER_LOST_ANSWER_SECONDS = AFTER_ERROR_SECONDS.slice(1);
/** A token that was postponed twice is sent at most once in this time, however often a person requests a sync. */
const SHORTEST_BETWEEN_PUT_OFFS_SECONDS = 60;
/** Delay before a token with a missing key is tried again. A person must restore the key. */
export const UNREADABLE_PAUSE_SECONDS = 300;

/** The lease must last this long when the token is sent: for the longest exchange and for storing its response. */
export const NEEDED_MS = TOKEN_DEADLINE_MS + 5_000;

/**
 * Seconds after which a token of this lifetime is refreshed: ahead of its expiry by the margin (REFRESH_MARGIN_SECONDS,
 * or a fifth of the lifetime and at least a minute), never by more than half the lifetime, else it would be refreshed
 * all the time. Up to a tenth of the margin earlier, so that companies onboarded together do not refresh together.
 */
export function refreshAfterSeconds(lifetime: number, margin: number | undefined, random: number): number {
  const ahead = margin ?? Math.max(SHORTEST_MARGIN_SECONDS, lifetime / 5);
  return lifetime - Math.min(lifetime / 2, ahead * (1 + random / 10));
}

/** Seconds until the next attempt after `failures` in a row: doubling up to five minutes, spread by half. */
export function retryAfterSeconds(failures: number, askedMs: number | undefined, random: number): number {
  const growing = Math.min(LONGEST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2 ** Math.min(failures - 1, 10));
  return Math.max(growing * (0.5 + random / 2), askedSeconds(askedMs));
}

/** Seconds until the next attempt after `putOffs` lost answers and unexplained errors in a row, up to a tenth sooner. */
export function putOffSeconds(
  putOffs: number,
  { isLost, askedMs, random }: { isLost: boolean; askedMs?: number | undefined; random: number },
): number {
  const delays = isLost ? AFTER_LOST_ANSWER_SECONDS : AFTER_ERROR_SECONDS;
  const delay = delays[Math.min(putOffs, delays.length) - 1]!;
  return Math.max(delay * Math.min(1, 0.9 + random / 10), askedSeconds(askedMs));
}

/** Seconds during which no request for a sync brings the next attempt forward, because the service asked for them or attempts are repeated. */
export function patienceSeconds(putOffs: number, askedMs: number | undefined): number {
  return Math.max(askedSeconds(askedMs), putOffs > 1 ? SHORTEST_BETWEEN_PUT_OFFS_SECONDS : 0);
}

function askedSeconds(askedMs = 0): number {
  return Math.min(LONGEST_RETRY_AFTER_SECONDS, askedMs / 1000);
}
