import { findOverdue, type OverdueKind } from '../db/tables/overdue.js';
import { type Check, counted, duration, type Finding, ok, problem, warning } from './check.js';
import type { DatabaseAccess } from './database-access.js';

export interface AgeNeeds {
  readonly access: DatabaseAccess;
  readonly environments: readonly string[];
}

/** Looks for work and states that are older than they should be. */
export function checkAge({ access, environments }: AgeNeeds): Check {
  return {
    name: 'age',
    look: async () => {
      const overdue = new Map((await access.read((db) => findOverdue(db, { environments }))).map((one) => [one.what, one]));
      const found = Object.entries(FINDINGS).flatMap(([what, finding]) => {
        const one = overdue.get(what as OverdueKind);
        return one ? [finding(one.count, duration(one.seconds))] : [];
      });
      return found.length > 0 ? found : [ok('no token, list, run, link or hold is older than it should be')];
    },
  };
}

const WORKER = 'See that a worker runs and reaches the database, and its log.';
const ISSUES = 'See what to do: `muster issues`.';
const companies = (count: number) => counted(count, 'company', 'companies');

/** In the order in which a person reads them. `age` is that of the oldest. */
const FINDINGS: Readonly<Record<OverdueKind, (count: number, age: string) => Finding>> = {
  tokens: (count, age) => problem(`${counted(count, 'token')} should have been refreshed, the first ${age} ago`, WORKER),
  reauthorization_required: (count, age) => warning(`${companies(count)} must authorize again, the first since ${age}`, ISSUES),
  list_late: (count, age) => warning(`lists of ${companies(count)} not proved complete in time, the first since ${age}`, ISSUES),
  never_proved: (count, age) => problem(`lists of ${companies(count)} never proved complete, the first since ${age}`, ISSUES),
  abandoned_runs: (count, age) =>
    problem(`${counted(count, 'run')} under way, and no worker has worked on it for ${age}`, WORKER),
  waiting_runs: (count, age) => problem(`${counted(count, 'run')} waiting for a worker, the first for ${age}`, WORKER),
  missed_syncs: (count, age) => problem(`${counted(count, 'nightly sync', 'nightly syncs')} due, the first ${age} ago`, WORKER),
  unused_links: (count) =>
    warning(
      `${counted(count, 'connect link')} expired within 14 days, and no company connected by it`,
      'Where a customer still waits: `muster connect-link`.',
    ),
  deletions_held: (count, age) => warning(`deletions of ${companies(count)} wait for a decision, the first for ${age}`, ISSUES),
};
