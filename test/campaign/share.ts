/**
 * How much of a campaign's full count is run. Without CAMPAIGN_ROUNDS all of it; 200 stands for all, so 20 for a tenth.
 */
export function shareOf(full: number): number {
  const rounds = Number(process.env.CAMPAIGN_ROUNDS ?? 200);
  return Math.max(1, Math.round((full * rounds) / 200));
}

/** Whether there is time for what takes minutes: the gate has none. */
export const IS_LONG = shareOf(20) > 1;
