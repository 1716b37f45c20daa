import { type CountedLists, type MissingProofs, measureMissingProofs } from '../db/tables/list-counts.js';
import { findOverdue, type OverdueKind } from '../db/tables/overdue.js';
import { type Check, counted, duration, type Finding, holding, ok, problem, warning } from './check.js';
import type { DatabaseAccess } from './database-access.js';

export interface AgeNeeds {
  readonly access: DatabaseAccess;
  readonly environments: readonly string[];
  /** The lists of the catalogue, and when they are late; undefined where a setting or the catalogue is wrong. */
  readonly lists: CountedLists | undefined;
}

/** Looks for work and states that are older than they should be. */
export function checkAge({ access, environments, lists }: AgeNeeds): Check {
  return {
    name: 'age',
    look: async () => {
      const overdue = new Map((await access.read((db) => findOverdue(db, { environments }))).map((one) => [one.what, one]));
      const proofs = lists && (await access.read((db) => measureMissingProofs(db, lists)));
      const found = Object.entries(FINDINGS).flatMap(([what, finding]) => {
        const one = overdue.get(what as OverdueKind);
        return one ? [finding(one.count, duration(one.seconds))] : [];
      });
      const missing = proofs ? tellMissing(proofs, overdue.has('never_proved')) : [];
      const all = [...missing, ...found];
      return all.some(({ level }) => level !== 'ok')
        ? all
        : [ok('no token, list, run, link or hold is older than it should be'), ...all];
    },
  };
}

const WORKER = 'See that a worker runs and reaches the database, and its log.';
const ISSUES = 'See what to do: `muster issues`.';
const companies = (count: number) => counted(count, 'company', 'companies');

/** In the order in which a person reads them. `age` is that of the oldest. */
const FINDINGS: Readonly<Record<Exclude<OverdueKind, 'never_proved'>, (count: number, age: string) => Finding>> = {
  tokens: (count, age) => problem(`${counted(count, 'token')} should have been refreshed, the first ${age} ago`, WORKER),
  reauthorization_required: (count, age) => warning(`${companies(count)} must authorize again, the first since ${age}`, ISSUES),
  abandoned_runs: (count, age) =>
    problem(`${counted(count, 'run')} under way, and no worker has worked on it for ${age}`, WORKER),
  waiting_runs: (count, age) => problem(`${counted(count, 'run')} waiting for a worker, the first for ${age}`, WORKER),
  missed_syncs: (count, age) => problem(`${counted(count, 'nightly sync', 'nightly syncs')} due, the first ${age} ago`, WORKER),
  missed_lists: (count, age) =>
    problem(`${counted(count, 'list')} due by ${count === 1 ? 'its schedule' : 'their schedules'}, the first ${age} ago`, WORKER),
  unused_links: (count) =>
    warning(
      `${counted(count, 'connect link')} expired within 14 days, and no company connected by it`,
      'Where a customer still waits: `muster connect-link`.',
    ),
  deletions_held: (count, age) => warning(`deletions of ${companies(count)} wait for a decision, the first for ${age}`, ISSUES),
};

/** The numbers of the overview, with their companies. `neverWorked`: an issue says that lists have never worked, before their first proof is overdue. */
function tellMissing(proofs: MissingProofs, neverWorked: boolean): Finding[] {
  const { late, lateCompanies, oldestSeconds, never, neverCompanies, firstProofOverdue } = proofs;
  const unproved = `${counted(never, 'list')} of ${companies(neverCompanies)} never proved complete`;
  return holding(
    late > 0 &&
      warning(
        `${counted(late, 'list')} of ${companies(lateCompanies)} late: the oldest proof is ${duration(oldestSeconds ?? 0)} old`,
        'See which, and why: `muster companies --proof late`.',
      ),
    never > 0 &&
      (firstProofOverdue > 0 || neverWorked
        ? problem(`${unproved}, ${firstProofOverdue} of them overdue`, 'See which, and why: `muster companies --proof never`.')
        : ok(`${unproved}: no first proof is overdue`)),
  );
}
