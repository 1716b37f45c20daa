import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { waitFor } from '../support/wait-for.js';
import { shareOf } from './share.js';
import { TokenFleet } from './token-fleet.js';

/**
 * Where a process is held, by what. The database holds it by triggers that wait for an advisory lock of ours, the provider
 * by not answering: nothing in the shipped code knows of it.
 */
const HOLDS = {
  /** `attempt_started_at` is written and not committed. */
  begin: 1,
  /** The answer is there, and its pair about to be written. */
  store: 2,
  /** The pair is written, and its commit under way. */
  commit: 3,
} as const;

const TRIGGERS = `
  CREATE FUNCTION public.hold() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    PERFORM pg_advisory_xact_lock_shared(TG_ARGV[0]::int, hashtext(NEW.company_id::text));
    RETURN NEW;
  END $$;
  CREATE TRIGGER hold_begin BEFORE UPDATE ON muster.tokens FOR EACH ROW
    WHEN (OLD.attempt_started_at IS NULL AND NEW.attempt_started_at IS NOT NULL) EXECUTE FUNCTION public.hold(${HOLDS.begin});
  CREATE TRIGGER hold_store BEFORE UPDATE ON muster.tokens FOR EACH ROW
    WHEN (OLD.refresh_token <> NEW.refresh_token) EXECUTE FUNCTION public.hold(${HOLDS.store});
  CREATE CONSTRAINT TRIGGER hold_commit AFTER UPDATE ON muster.tokens DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.refresh_token <> NEW.refresh_token) EXECUTE FUNCTION public.hold(${HOLDS.commit});`;

/** Companies whose processes die side by side. */
const LANES = 4;
let fleet: TokenFleet;

beforeAll(async () => {
  fleet = await TokenFleet.open(LANES);
  await fleet.database.db.pool.query(TRIGGERS);
});
afterAll(() => fleet.close());

/** A process is killed once it stands in the lock; then what it had asked of the database goes on, or is broken off. */
async function killHeld(companyId: string, hold: keyof typeof HOLDS, then: 'goes on' | 'is broken off'): Promise<void> {
  const holder = new pg.Client(fleet.database.url);
  await holder.connect();
  try {
    const key = [HOLDS[hold], companyId];
    await holder.query('SELECT pg_advisory_lock($1, hashtext($2))', key);
    const doomed = await fleet.start();
    doomed.ask(companyId).catch(() => {});
    const pid = await waitFor(async () => {
      const { rows } = await holder.query<{ pid: number }>(
        `SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND classid = $1::int::oid
           AND objid::bigint = hashtext($2)::bigint & 4294967295 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
        key,
      );
      return rows[0]?.pid;
    });
    await doomed.kill();
    if (then === 'is broken off') await holder.query('SELECT pg_terminate_backend($1)', [pid]);
    await holder.query('SELECT pg_advisory_unlock($1, hashtext($2))', key);
    await waitFor(async () => (await holder.query('SELECT FROM pg_stat_activity WHERE pid = $1', [pid])).rowCount === 0);
  } finally {
    await holder.end();
  }
}

/** A process is killed while the provider has its request. */
async function killInFlight(companyId: string, when: 'before' | 'after'): Promise<void> {
  const doomed = await fleet.start();
  fleet.sandbox.requests.clear();
  fleet.sandbox.faults.add({ kind: 'hang', when }, { path: '/auth/token' });
  doomed.ask(companyId).catch(() => {});
  await waitFor(() => fleet.refreshes > 0);
  await doomed.kill();
}

/** One at a time: the provider's log does not tell whose refresh it is, and a fault would meet whoever comes first. */
let flying: Promise<unknown> = Promise.resolve();
function inTurn(work: () => Promise<void>): Promise<void> {
  const done = flying.then(work);
  flying = done.catch(() => {});
  return done;
}

type Outcome = 'goes on' | 'must authorize again';

/** The lease runs out, and somebody else needs the token. */
async function afterwards(companyId: string): Promise<Outcome> {
  const company = { environment: 'test', companyId } as const;
  await fleet.alter(companyId, "lease_until = now() - interval '1 second'");
  const outcome = await fleet
    .manager()
    .sourceFor(company)
    .get()
    .then(
      async (token) => {
        expect(await fleet.status(companyId, token)).toBe(200);
        return 'goes on' as const;
      },
      (error: { code: string }) => {
        expect(error.code).toBe('reauthorization_required');
        return 'must authorize again' as const;
      },
    );
  // Never a silent loss: what the outside sees agrees with what can be done.
  const found = await fleet.room.connections.find(company);
  expect([found?.status, found?.reauthorizationReason]).toEqual(
    outcome === 'goes on' ? ['active', null] : ['reauthorization_required', 'refresh_outcome_unknown'],
  );
  return outcome;
}

interface Step {
  readonly step: string;
  readonly kills: number;
  readonly kill: (companyId: string) => Promise<void>;
  readonly inTurn?: boolean;
  readonly outcome: Outcome;
}

const STEPS: readonly Step[] = [
  {
    step: 'before the request, the attempt on record',
    kills: 50,
    kill: (id) => killHeld(id, 'begin', 'goes on'),
    outcome: 'goes on',
  },
  {
    step: 'before the request, nothing on record',
    kills: 50,
    kill: (id) => killHeld(id, 'begin', 'is broken off'),
    outcome: 'goes on',
  },
  { step: 'in flight, not received', kills: 50, kill: (id) => killInFlight(id, 'before'), inTurn: true, outcome: 'goes on' },
  {
    step: 'in flight, granted',
    kills: 50,
    kill: (id) => killInFlight(id, 'after'),
    inTurn: true,
    outcome: 'must authorize again',
  },
  {
    step: 'after the answer, its write broken off',
    kills: 50,
    kill: (id) => killHeld(id, 'store', 'is broken off'),
    outcome: 'must authorize again',
  },
  {
    step: 'after the answer, its commit never sent',
    kills: 50,
    kill: (id) => killHeld(id, 'store', 'goes on'),
    outcome: 'must authorize again',
  },
  { step: 'after the commit', kills: 100, kill: (id) => killHeld(id, 'commit', 'goes on'), outcome: 'goes on' },
];

test.each(STEPS)('kill -9 $step: $outcome', async ({ kills, kill, inTurn: isInTurn, outcome }) => {
  let left = shareOf(kills);
  const outcomes: Outcome[] = [];
  const round = async (companyId: string) => {
    await fleet.expire(companyId);
    await kill(companyId);
    const found = await afterwards(companyId);
    outcomes.push(found);
    if (found === 'must authorize again') await fleet.onboard(companyId);
  };
  await Promise.all(
    fleet.sandbox.companies.map(async ({ companyId }) => {
      while (left-- > 0) await (isInTurn ? inTurn(() => round(companyId)) : round(companyId));
    }),
  );
  expect(new Set(outcomes)).toEqual(new Set([outcome]));
});
