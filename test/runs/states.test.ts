import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock as clock } from '../../src/core/clock.js';
import type { CompanyKey } from '../../src/core/company.js';
import { inTransaction } from '../../src/db/connection/transaction.js';
import { postponeRun, putOffRun, releaseRun } from '../../src/db/tables/run-releases.js';
import { type ClaimedRun, claimRun } from '../../src/db/tables/runs.js';
import { removeCompany } from '../../src/erasure/company-removal.js';
import { pagerFor } from '../../src/pagers/registry.js';
import { finishRun } from '../../src/runs/attempt.js';
import { Runs } from '../../src/runs/runs.js';
import { compareEverything } from '../../src/walks/comparison.js';
import { readInFull } from '../../src/walks/received-page.js';
import { firstCheckpoint } from '../../src/walks/walk-checkpoint.js';
import { WalkStore } from '../../src/walks/walk-store.js';
import { onboard } from '../mirror/mirror-fixture.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { notQuiet } from '../support/quiet.js';
import { testSuppressions } from '../support/suppressions.js';
import { ENTRIES, endpointsOf } from '../walks/company-fixture.js';

const document = readFileSync(new URL('../../docs/states.md', import.meta.url), 'utf8');
const [endpoint] = endpointsOf({ employees: ENTRIES.employees });

/** The rows of the table of a section, as [from, event, to]. */
function transitions(section: string): [string, string, string][] {
  const text = document.split(/^## /m).find((part) => part.startsWith(section))!;
  const rows = [...text.matchAll(/^\| `(\w+)` \| (\w+) \| `(\w+)` \|$/gm)];
  return rows.map(([, from, event, to]) => [from!, event!, to!]);
}

let database: TestDatabase;
let runs: Runs;
let store: WalkStore;

beforeAll(async () => {
  database = await testDatabase();
  const { db } = database;
  store = new WalkStore({ db, clock, quiet: notQuiet, comparisons: compareEverything, suppressions: testSuppressions });
  const catalogue = { endpoints: [endpoint!], get: () => endpoint };
  const schedule = { cron: '0 2 * * *', timezone: 'UTC', spreadMinutes: 0 };
  runs = new Runs({ db, clock, catalogue, quiet: notQuiet, schedule, dispatcher: { dispatch: async () => {} } });
});
afterAll(() => database.close());

const emptyPage = await readInFull(
  { bytes: Buffer.from('{"totalRecords":0,"data":[]}'), headers: {}, url: 'http://service/' },
  { resource: 'employees', id: endpoint!.id, pager: pagerFor(endpoint!), ignoreTotals: false },
  'id',
);

const failure = { code: 'internal_error', message: 'x' } as const;

const claimed = (id: string) => claimRun(database.db, { id, worker: 'worker' });

/** The run's walks are over, and then it is. */
async function succeed(claim: ClaimedRun): Promise<void> {
  await database.db.prisma.walk.updateMany({ where: { runId: claim.id }, data: { status: 'succeeded' } });
  expect(await finishRun(database.db, claim, 'succeeded')).toBe(true);
}

/** A run of a new company in the given state, claimed where that state can only be reached so. */
async function runIn(status: string) {
  const company = await onboard(database.db);
  const { id } = await runs.request({ company, trigger: 'manual' });
  const claim = status === 'queued' ? undefined : (await claimed(id))!;
  if (status === 'succeeded') await succeed(claim!);
  if (status === 'failed' || status === 'cancelled') await finishRun(database.db, claim!, status);
  return { id, company, claim };
}

describe('a run', () => {
  const events: Record<string, (run: Awaited<ReturnType<typeof runIn>>) => Promise<unknown>> = {
    claimed: async ({ id, claim }) => {
      if (claim) await releaseRun(database.db, claim);
      expect(await claimed(id)).toBeDefined();
    },
    released: ({ claim }) => releaseRun(database.db, claim!),
    postponed: ({ claim }) => postponeRun(database.db, { ...claim!, delaySeconds: 10, error: failure }),
    stopped: ({ claim }) => putOffRun(database.db, { ...claim!, quietUntil: new Date(clock.now() + 3_600_000), isAsked: true }),
    finished: ({ claim }) => succeed(claim!),
    failed: ({ claim }) => finishRun(database.db, claim!, 'failed', failure),
    cancelled: ({ id }) => runs.cancel(id),
    removed: ({ company }) => inTransaction(database.db, (tx) => removeCompany(tx, company, { name: 'test', role: 'admin' })),
  };

  test.each(transitions('Run'))('that is %s and is %s is then %s', async (from, event, to) => {
    const run = await runIn(from);
    await events[event]!(run);
    expect((await runs.find(run.id))!.status).toBe(to);
  });

  test('whose cancelling came too late for the worker that put it off is claimed at once, to be cancelled', async () => {
    const { id, claim } = await runIn('running');
    await runs.cancel(id);
    await postponeRun(database.db, { ...claim!, delaySeconds: 86_400, error: failure });
    expect(await claimed(id)).toMatchObject({ cancelRequested: true });
  });

  test('does not succeed while one of its walks is not over', async () => {
    const { id, claim } = await runIn('running');
    expect(await finishRun(database.db, claim!, 'succeeded')).toBe(false);
    expect(await runs.find(id)).toMatchObject({ status: 'running', walks: [{ status: 'queued' }] });
  });

  test('is never claimed once it has ended', async () => {
    for (const status of ['succeeded', 'failed', 'cancelled']) expect(await claimed((await runIn(status)).id)).toBeUndefined();
  });
});

describe('a walk', () => {
  async function walkIn(status: string, company: CompanyKey) {
    const { id } = await runs.request({ company, trigger: 'manual' });
    const run = (await claimed(id))!;
    const row = await database.db.prisma.walk.findFirstOrThrow({ where: { runId: id } });
    const walk = { id: row.id, run };
    const opened = status === 'queued' ? undefined : await store.open(walk, endpoint!, true);
    if (status === 'failed') await store.fail(walk, { error: failure }, false);
    return { walk, opened };
  }

  const events: Record<string, (given: Awaited<ReturnType<typeof walkIn>>) => Promise<unknown>> = {
    opened: ({ walk }) => store.open(walk, endpoint!, true),
    committed: ({ opened }) =>
      store.commitPages(opened!, {
        pages: [{ page: emptyPage, number: 0, newFrom: 0 }],
        checkpoint: firstCheckpoint(pagerFor(endpoint!)),
      }),
    ended: ({ opened }) => store.finish(opened!, { kind: 'verified', proof: 'join' }, endpoint!),
    failed: ({ walk }) => store.fail(walk, { error: failure }, false),
  };

  test.each(transitions('Walk'))('that is %s and is %s is then %s', async (from, event, to) => {
    const given = await walkIn(from, await onboard(database.db));
    await events[event]!(given);
    expect((await database.db.prisma.walk.findUniqueOrThrow({ where: { id: given.walk.id } })).status).toBe(to);
  });

  test('that has ended is not opened again', async () => {
    const { walk, opened } = await walkIn('running', await onboard(database.db));
    await store.finish(opened!, { kind: 'verified', proof: 'join' }, endpoint!);
    await expect(store.open(walk, endpoint!, true)).rejects.toMatchObject({ code: 'fenced' });
    await store.fail(walk, { error: failure }, true);
    expect((await database.db.prisma.walk.findUniqueOrThrow({ where: { id: walk.id } })).status).toBe('succeeded');
  });
});
