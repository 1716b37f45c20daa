/** Longer than the distance of any zone from UTC. */
const FARTHEST_MS = 27 * 3_600_000;

/** Whether there is this day, written as 2026-11-24. */
export function isDay(text: string): boolean {
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return false;
  const time = Date.parse(`${text}T00:00:00Z`);
  return time >= 0 && new Date(time).toISOString().startsWith(text);
}

/** The first moment of a day in a time zone, which is not midnight where the clocks leave midnight out; and that of the day after. */
export function boundsOfDay(day: string, zone: string): { readonly since: Date; readonly until: Date } {
  const next = new Date(Date.parse(`${day}T00:00:00Z`) + 86_400_000).toISOString().slice(0, 10);
  return { since: beginningOf(day, zone), until: beginningOf(next, zone) };
}

interface Bounds {
  readonly since?: Date | undefined;
  readonly until?: Date | undefined;
}

/** The bounds of a list as they are given, and those of the day, where one is given too. */
export function boundsWithin({ day, since, until }: Bounds & { readonly day?: string | undefined }, zone: string): Bounds {
  if (day === undefined) return { since, until };
  const whole = boundsOfDay(day, zone);
  return {
    since: since && since > whole.since ? since : whole.since,
    until: until && until < whole.until ? until : whole.until,
  };
}

function beginningOf(day: string, zone: string): Date {
  // Swedish writes a date as ISO 8601 does.
  const dayOf = new Intl.DateTimeFormat('sv-SE', { timeZone: zone });
  const middle = Date.parse(`${day}T00:00:00Z`);
  let before = middle - FARTHEST_MS;
  let after = middle + FARTHEST_MS;
  while (after - before > 1) {
    const between = Math.floor((before + after) / 2);
    if (dayOf.format(between) < day) before = between;
    else after = between;
  }
  return new Date(after);
}
