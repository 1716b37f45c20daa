import { LONGEST_PUT_OFF_SECONDS, LONGEST_RETRY_AFTER_SECONDS } from '../db/tables/tokens.js';
import { TOKEN_DEADLINE_MS } from './token-endpoint.js';

const SHORTEST_MARGIN_SECONDS = 60;
const FIRST_RETRY_SECONDS = 2;
const LONGEST_RETRY_SECONDS = 300;
/** Between answers that are errors without an explanation: the token is as good as before. The last one goes on. */
const AFTER_ERROR_SECONDS = [10, 60, 300, 1_800, LONGEST_PUT_OFF_SECONDS];
/** The token of a lost answer may be spent, and a service may take its repetition for theft: it is left alone for longer. */
const AFTER_LOST_ANSWER_SECONDS = AFTER_ERROR_SECONDS.slice(1);
/** A token that was put off twice is sent once in this time at most, however often a person asks for a sync. */
const SHORTEST_BETWEEN_PUT_OFFS_SECONDS = 60;
/** Until the next look at a token whose key is missing: a person must give the key back. */
export const UNREADABLE_PAUSE_SECONDS = 300;

/** The time that must be left of the lease when the token is sent: for the longest exchange, and for storing its answer. */
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

/** Seconds until the next attempt after so many failures in a row: doubling, up to five minutes, spread by half. */
export function retryAfterSeconds(failures: number, askedMs: number | undefined, random: number): number {
  const growing = Math.min(LONGEST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2 ** Math.min(failures - 1, 10));
  return Math.max(growing * (0.5 + random / 2), askedSeconds(askedMs));
}

/** Seconds until the next attempt after so many lost answers and errors without an explanation in a row, up to a tenth sooner. */
export function putOffSeconds(
  putOffs: number,
  { isLost, askedMs, random }: { isLost: boolean; askedMs?: number | undefined; random: number },
): number {
  const delays = isLost ? AFTER_LOST_ANSWER_SECONDS : AFTER_ERROR_SECONDS;
  const delay = delays[Math.min(putOffs, delays.length) - 1]!;
  return Math.max(delay * Math.min(1, 0.9 + random / 10), askedSeconds(askedMs));
}

/** Seconds before which nothing brings the next attempt forward: the service asked for them, or somebody asks for attempt after attempt. */
export function patienceSeconds(putOffs: number, askedMs: number | undefined): number {
  return Math.max(askedSeconds(askedMs), putOffs > 1 ? SHORTEST_BETWEEN_PUT_OFFS_SECONDS : 0);
}

function askedSeconds(askedMs = 0): number {
  return Math.min(LONGEST_RETRY_AFTER_SECONDS, askedMs / 1000);
}
