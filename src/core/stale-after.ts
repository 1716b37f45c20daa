/** Hours without a proof after which a list is late: one number for every list, or another one for some of them. */
export type StaleAfterHours =
  | number
  | {
      /** STALE_AFTER_HOURS: for the lists that are walked every night. */
      readonly nightly: number;
      /** The hours of each list with a schedule of its own, maybe less than one, by its name. */
      readonly own: Readonly<Record<string, number>>;
    };

export function nightlyHours(hours: StaleAfterHours): number {
  return typeof hours === 'number' ? hours : hours.nightly;
}

/** The hours of the lists with schedules of their own, by name. */
export function ownHours(hours: StaleAfterHours): Readonly<Record<string, number>> {
  return typeof hours === 'number' ? {} : hours.own;
}

export function hoursOf(hours: StaleAfterHours, resource: string): number {
  return ownHours(hours)[resource] ?? nightlyHours(hours);
}
