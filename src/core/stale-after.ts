/** Hours without a proof after which a list is late: one number for every list, or another one for some of them. */
export type StaleAfterHours =
  | number
  | {
      /** Of the lists that are walked every night: STALE_AFTER_HOURS. */
      readonly nightly: number;
      /** By the name of each list with a schedule of its own, maybe less than an hour. */
      readonly own: Readonly<Record<string, number>>;
    };

export function nightlyHours(hours: StaleAfterHours): number {
  return typeof hours === 'number' ? hours : hours.nightly;
}

/** Of the lists with schedules of their own. */
export function ownHours(hours: StaleAfterHours): Readonly<Record<string, number>> {
  return typeof hours === 'number' ? {} : hours.own;
}

export function hoursOf(hours: StaleAfterHours, resource: string): number {
  return ownHours(hours)[resource] ?? nightlyHours(hours);
}
