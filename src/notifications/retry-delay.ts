import type { DeliveryError } from '../db/tables/notifications.js';

const MINUTE = 60;
const HOUR = 60 * MINUTE;

/** Seconds between an attempt and the next. Their sum is how long a receiver may be down and still hear of everything: a day. */
const DELAYS = [5, 15, MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR / 2, HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, 8 * HOUR];

/**
 * A refusal is rarely mended by waiting, yet it may be one: a receiver that is being deployed, a secret that is being
 * changed. So it is tried again for an hour, not for a day.
 */
const DELAYS_OF_REFUSAL = DELAYS.slice(0, 6);

const LONGEST_ASKED = HOUR;

/** Seconds until the next attempt, after `attempts` that failed; undefined = no more. `random` is 0 to 1. */
export function retryDelay(
  { status }: DeliveryError,
  attempts: number,
  random: number,
  retryAfterMs: number | undefined,
): number | undefined {
  // The receiver says that it is gone for good.
  if (status === 410) return undefined;
  const delay = (isRefusal(status) ? DELAYS_OF_REFUSAL : DELAYS)[attempts - 1];
  if (delay === undefined) return undefined;
  const asked = Math.min(LONGEST_ASKED, (retryAfterMs ?? 0) / 1_000);
  // Spread, so that what failed together does not come back together.
  return Math.max(delay * (0.8 + 0.4 * random), asked);
}

function isRefusal(status: number | undefined): boolean {
  return status !== undefined && status >= 300 && status < 500 && status !== 408 && status !== 429;
}
