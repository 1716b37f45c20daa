/** `ok`: nothing to do. `warning`: worth a look. `problem`: something does not work, or soon will not. */
export type Level = 'ok' | 'warning' | 'problem';

export interface Finding {
  readonly level: Level;
  /** Says what was found, without any secret. */
  readonly found: string;
  /** Says what to do next; absent where nothing is to be done. */
  readonly next?: string;
}

/** One look at an installation. It changes nothing. */
export interface Check {
  readonly name: string;
  /** Throws where it cannot look: NotLookedAt, or the error that it met. */
  look(): Promise<readonly Finding[]>;
}

/** A check could not look, for a reason that another check reports or that is no fault. */
export class NotLookedAt extends Error {
  constructor(readonly finding: Finding) {
    super(finding.found);
  }
}

/** Handles the rejection of a check that could not look; other errors pass. */
export function ifNotLookedAt<T>(instead: (finding: Finding) => T): (error: unknown) => T {
  return (error) => {
    if (error instanceof NotLookedAt) return instead(error.finding);
    throw error;
  };
}

/** The findings whose conditions hold. */
export function holding(...findings: readonly (Finding | false)[]): Finding[] {
  return findings.filter((finding) => finding !== false);
}

export const ok = (found: string): Finding => ({ level: 'ok', found });
export const warning = (found: string, next: string): Finding => ({ level: 'warning', found, next });
export const problem = (found: string, next: string): Finding => ({ level: 'problem', found, next });

/** `1 list`, `3 lists`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** Writes a duration in its largest unit. */
export function duration(seconds: number): string {
  const [length, unit] =
    seconds >= 2 * 86_400
      ? [86_400, 'days']
      : seconds >= 2 * 3_600
        ? [3_600, 'hours']
        : seconds >= 120
          ? [60, 'minutes']
          : [1, 's'];
  return `${Math.floor(seconds / length)} ${unit}`;
}

export function size(bytes: number): string {
  const [unit, name] = bytes >= 1e9 ? [1e9, 'GB'] : [1e6, 'MB'];
  return `${(bytes / unit).toFixed(1)} ${name}`;
}
