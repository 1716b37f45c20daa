import { setImmediate as nextTurn } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RunModel } from '../../src/api/runs/run-model.js';
import { type Clock, systemClock } from '../../src/core/clock.js';
import type { CompanyKey } from '../../src/core/company.js';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import type { Effect } from '../../src/sandbox/faults.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { randomOf } from '../pagers/shifting-list.js';
import { companyIdOf } from '../support/company-ids.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { mirrored, upstream } from '../support/mirror-comparison.js';
import { ENTRIES, endpointsOf } from '../walks/company-fixture.js';
import { type SyncHarness, syncHarness } from '../walks/sync-harness.js';
import { draw, type Random } from './draw.js';
import { shareOf } from './share.js';

// Mixes of faults of the service, each over lists of its own: whatever comes, the mirror equals the truth, or the walk says which fault kept it
// from that, and once the faults are over, the next run makes it equal. `FIRST_SEED` replays one.

const MIXES = shareOf(2_000);
const FIRST = Number(process.env.FIRST_SEED ?? 1);
const COMPANIES_AT_ONCE = 100;
const LISTS = ['employees', 'departments', 'documents'] as const;
const PATHS = { employees: '/employees', departments: '/departments', documents: '/documents' } as const;
const MOST_BYTES = 200_000;
const BOMB = gzipSync(Buffer.alloc(5 * MOST_BYTES));

/** Nobody waits: a retry comes in the next turn. */
const clock: Clock = { ...systemClock, sleep: async (_ms, signal) => (await nextTurn(), signal?.throwIfAborted()) };

/** What a fault does, and the codes and reasons that name it. */
const FAULTS: Record<
  string,
  { readonly effect: (random: Random, list: (typeof LISTS)[number]) => Effect; readonly names: readonly string[] }
> = {
  throttled: { effect: () => ({ kind: 'status', status: 429, headers: { 'retry-after': '1' } }), names: ['service_throttled'] },
  unavailable: { effect: () => ({ kind: 'status', status: 503 }), names: ['service_error'] },
  reset: {
    effect: (random) => ({ kind: 'drop', when: (['before', 'midway', 'after'] as const)[random(3)]! }),
    names: ['service_unreachable'],
  },
  truncated: { effect: () => ({ kind: 'truncate' }), names: ['malformed_response', 'service_unreachable'] },
  html: {
    effect: () => ({ kind: 'status', status: 200, headers: { 'content-type': 'text/html' }, body: '<h1>Sign in</h1>' }),
    names: ['malformed_response'],
  },
  slow: { effect: (random) => ({ kind: 'delay', ms: random(20) }), names: [] },
  totals: {
    effect: (random) => ({ kind: 'alter', members: { totalRecords: 26 + random(40) } }),
    names: ['contradicting_envelope', 'total_mismatch', 'total_changed'],
  },
  display: { effect: () => ({ kind: 'alter', members: { totalDisplayRecords: 3 } }), names: ['contradicting_envelope'] },
  // The last page of a chain without a total may lack the member: that says that there are no records there (docs/configuration.md).
  headless: {
    effect: (_, list) => ({ kind: 'alter', members: { data: list === 'documents' ? 'none' : undefined } }),
    names: ['malformed_envelope'],
  },
  accessToken: { effect: () => ({ kind: 'status', status: 401 }), names: ['service_refused'] },
  pageToken: { effect: () => ({ kind: 'status', status: 410 }), names: ['page_token_expired', 'service_refused'] },
  redirect: {
    effect: () => ({ kind: 'status', status: 302, headers: { location: 'http://127.0.0.1:1/elsewhere' } }),
    names: ['service_refused'],
  },
  bomb: {
    effect: () => ({ kind: 'status', status: 200, headers: { 'content-encoding': 'gzip' }, body: BOMB }),
    names: ['response_too_large'],
  },
};

let database: TestDatabase;
let sandbox: Sandbox;
let harness: SyncHarness;
const ends = { verified: 0, told: 0 };

beforeAll(async () => {
  database = await testDatabase();
  const endpoints = endpointsOf({
    employees: ENTRIES.employees,
    departments: ENTRIES.departments,
    documents: ENTRIES.documents,
  });
  await ensureMirrorTables(database.db, { endpoints, get: () => undefined });
});
afterAll(() => database.close());

test(`${MIXES} mixes of faults`, async () => {
  for (let seed = FIRST; seed < FIRST + MIXES; seed += 1) {
    if ((seed - FIRST) % COMPANIES_AT_ONCE === 0) await renew(seed);
    try {
      await mix(seed, companyIdOf(seed));
    } catch (cause) {
      throw new Error(`seed ${seed}: ${(cause as Error).message}`, { cause });
    }
  }
  await harness.close();
  await sandbox.stop();
  expect(ends.verified).toBeGreaterThan(0);
  if (MIXES >= 50) expect(ends.told).toBeGreaterThan(0);
});

/** A provider does not grow with the campaign. */
async function renew(first: number): Promise<void> {
  await harness?.close();
  await sandbox?.stop();
  const lengths = { employees: 25, departments: 12, documents: 25 };
  const companies = Array.from({ length: COMPANIES_AT_ONCE }, (_, n) => ({
    // Its records follow from its id.
    companyId: companyIdOf(first + n),
    name: `C${n}`,
    ...lengths,
  }));
  sandbox = await startSandbox({ companies });
  const endpoints = endpointsOf({ employees: ENTRIES.employees, departments: ENTRIES.departments, documents: ENTRIES.documents });
  harness = syncHarness(database.db, sandbox, endpoints, { clock, http: { maxBytes: MOST_BYTES } });
}

async function mix(seed: number, companyId: string): Promise<void> {
  const random = randomOf(seed * 7919);
  const company = await harness.onboard(companyId);
  const named = new Map<string, Set<string>>(LISTS.map((list) => [list, new Set()]));
  const weights = Object.fromEntries(Object.keys(FAULTS).map((name) => [name, 1]));
  for (let n = 1 + random(5); n > 0; n -= 1) {
    const list = LISTS[random(LISTS.length)]!;
    const fault = FAULTS[draw(random, weights)]!;
    const times = random(4) === 0 ? Infinity : 1 + random(6);
    sandbox.faults.add(fault.effect(random, list), { path: PATHS[list], skip: random(4), times });
    for (const name of fault.names) named.get(list)!.add(name);
  }
  const run = await ended(company);
  for (const walk of run.walks) {
    const list = walk.resource as (typeof LISTS)[number];
    if (walk.verified) {
      expect(await mirrored(database.db, list, companyId), `${list} is verified`).toEqual(upstream(sandbox, list, companyId));
      ends.verified += 1;
      continue;
    }
    const said = walk.error?.code ?? walk.unverified_reason ?? run.error?.code;
    expect([...named.get(list)!], `${list} ended ${walk.status}, of ${said}`).toContain(said);
    ends.told += 1;
  }
  sandbox.faults.clear();
  // A run that waited to retry has lists behind it that it will not walk again.
  const next = await ended(company);
  const last = next.id === run.id ? await ended(company) : next;
  for (const walk of last.walks) {
    expect(walk, `${walk.resource} behind the faults`).toMatchObject({ status: 'succeeded', verified: true });
    const list = walk.resource as (typeof LISTS)[number];
    expect(await mirrored(database.db, list, companyId)).toEqual(upstream(sandbox, list, companyId));
  }
}

/** A run until it has ended, or has waited to retry three times. */
async function ended(company: CompanyKey): Promise<RunModel> {
  let run = await harness.sync(company, { mode: 'full' });
  for (let n = 0; n < 3 && run.status === 'queued'; n += 1) run = await harness.sync(company, { mode: 'full' });
  return run;
}
