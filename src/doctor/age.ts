import type { Reader } from '../db/connection/read-only.js';
import {
  countReauthorizations,
  findAbandonedRuns,
  findForgottenRuns,
  findLateLists,
  findMissedSyncs,
  findOldHolds,
  findOverdueTokens,
  findUnprovedLists,
  findUnusedLinks,
  type Overdue,
} from '../db/tables/overdue.js';
import { type Check, counted, duration, type Finding, ok, problem, warning } from './check.js';
import type { DatabaseAccess } from './database-access.js';

export interface AgeNeeds {
  readonly access: DatabaseAccess;
  readonly environments: readonly string[];
  /** The lists of the catalogue. */
  readonly resources: readonly string[];
  /** From which age on a list's last proof is late. */
  readonly staleAfterHours: number;
}

const MINUTE = 60;
const HOUR = 3_600;
const DAY = 86_400;

/** A refresh, a nightly sync and a run are begun within seconds of their time while any worker is there. */
const WORKER_AWAY_SECONDS = 15 * MINUTE;
/** A run whose worker died goes on within seconds. */
const ABANDONED_SECONDS = 5 * MINUTE;
const OLD_HOLD_SECONDS = 3 * DAY;
const LINK_DAYS = 14;

const WORKER = 'See that a worker runs and reaches the database, and its log.';

/** What is older than it should be. */
export function checkAge(needs: AgeNeeds): Check {
  return {
    name: 'age',
    look: () =>
      needs.access.read(async (db) => {
        const found: Finding[] = [];
        // One after the other: they share a connection.
        for (const rule of rulesOf(needs)) {
          const overdue = await rule.find(db);
          if (overdue.count > 0) found.push(rule.tell(overdue));
        }
        return found.length > 0 ? found : [ok('no token, list, run, link or hold is older than it should be')];
      }),
  };
}

interface Rule {
  find(db: Reader): Promise<Overdue>;
  tell(overdue: Overdue): Finding;
}

function rulesOf({ environments, resources, staleAfterHours }: AgeNeeds): readonly Rule[] {
  const late = { resources, seconds: staleAfterHours * HOUR };
  return [
    {
      find: (db) => findOverdueTokens(db, { environments, seconds: WORKER_AWAY_SECONDS }),
      tell: (tokens) => problem(`${counted(tokens.count, 'token')} should have been refreshed, the first ${ago(tokens)}`, WORKER),
    },
    {
      find: countReauthorizations,
      tell: (companies) =>
        warning(
          `${counted(companies.count, 'company', 'companies')} must authorize again, the first since ${since(companies)}`,
          'Send each its link: `muster companies --status reauthorization_required`.',
        ),
    },
    {
      find: (db) => findLateLists(db, late),
      tell: (lists) =>
        warning(
          `${counted(lists.count, 'list')} not proved complete for more than ${staleAfterHours} hours, the first for ${since(lists)}`,
          'See why: `muster runs --status failed`, and docs/verification.md for those that are unverified.',
        ),
    },
    {
      find: (db) => findUnprovedLists(db, late),
      tell: (lists) =>
        problem(
          `${counted(lists.count, 'list')} never proved complete, the first for ${since(lists)}`,
          'See why: `muster issues`, `muster rejected`, and docs/verification.md.',
        ),
    },
    {
      find: (db) => findAbandonedRuns(db, { seconds: ABANDONED_SECONDS }),
      tell: (runs) => problem(`${counted(runs.count, 'run')} under way, and nobody has worked on it for ${since(runs)}`, WORKER),
    },
    {
      find: (db) => findForgottenRuns(db, { seconds: WORKER_AWAY_SECONDS }),
      tell: (runs) => problem(`${counted(runs.count, 'run')} waiting for a worker, the first for ${since(runs)}`, WORKER),
    },
    {
      find: (db) => findMissedSyncs(db, { seconds: WORKER_AWAY_SECONDS }),
      tell: (syncs) => problem(`${counted(syncs.count, 'nightly sync', 'nightly syncs')} due, the first ${ago(syncs)}`, WORKER),
    },
    {
      find: (db) => findUnusedLinks(db, { days: LINK_DAYS }),
      tell: (links) =>
        warning(
          `${counted(links.count, 'connect link')} expired within ${LINK_DAYS} days, and nobody connected by it`,
          'Where a customer still waits: `muster connect-link`.',
        ),
    },
    {
      find: (db) => findOldHolds(db, { seconds: OLD_HOLD_SECONDS }),
      tell: (holds) =>
        warning(
          `${counted(holds.count, 'hold')} not decided, the first for ${since(holds)}`,
          'Decide: `muster holds --status open`.',
        ),
    },
  ];
}

const since = ({ seconds }: Overdue) => duration(seconds ?? 0);
const ago = (overdue: Overdue) => `${since(overdue)} ago`;
