import { beforeEach, describe, expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import type { ErrorCode } from '../../src/core/errors.js';
import { Secret } from '../../src/core/secret.js';
import { type Database, openDatabase } from '../../src/db/connection/database.js';
import { inTransaction } from '../../src/db/connection/transaction.js';
import { postponeRun } from '../../src/db/tables/run-releases.js';
import { claimRun } from '../../src/db/tables/runs.js';
import { finishRun } from '../../src/runs/attempt.js';
import { alter, DUE, EXPIRED, newCompany, type OauthRoom, oauthRoom, onboarded } from '../oauth/fixture.js';
import { oauthSuite } from '../oauth/suite.js';
import { emptyTables } from '../support/empty-tables.js';

const { database, server } = await oauthSuite();
let room: OauthRoom;

beforeEach(async () => {
  await emptyTables(database.db, 'muster.notifications', 'muster.connections', 'muster.runs');
  room = oauthRoom(database.db, server);
});

/** What was recorded of the company, in order. */
async function told({ companyId }: CompanyKey): Promise<unknown[]> {
  const rows = await database.db.prisma.notification.findMany({ where: { companyId }, orderBy: { seq: 'asc' } });
  return rows.map(({ type, details }) => ({ type, ...(details as object) }));
}

/** Parts as in so many processes: each with a pool of its own. */
async function inProcesses<T>(count: number, work: (db: Database) => Promise<T>): Promise<PromiseSettledResult<T>[]> {
  const databases = Array.from({ length: count }, () => openDatabase({ url: database.url, poolSize: 2 }));
  try {
    return await Promise.allSettled(databases.map(work));
  } finally {
    for (const db of databases) await db.close();
  }
}

describe('the loss of an authorization', () => {
  const lost = (reason: string) => ({ type: 'reauthorization_required', reason });
  const restored = { type: 'authorization_restored' };

  test('that eight processes notice at once is one event, in the transaction that blocks the company', async () => {
    const { company, token } = await onboarded(room, server);
    server.revoke(token);
    await alter(database.db, company, EXPIRED);
    const outcomes = await inProcesses(8, (db) => oauthRoom(db, server).manager.sourceFor(company).get());
    expect(outcomes.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 'rejected'));
    expect(await told(company)).toEqual([lost('token_refused')]);
  });

  test('that eight workers meet in API calls at once is one event', async () => {
    const { company } = await onboarded(room, server);
    const outcomes = await inProcesses(8, (db) =>
      oauthRoom(db, server).connections.requireReauthorization(company, 'access_token_refused'),
    );
    expect(outcomes.filter((outcome) => outcome.status === 'fulfilled' && outcome.value)).toHaveLength(1);
    expect(await told(company)).toEqual([lost('access_token_refused')]);
  });

  test('is not told when the transaction that would have made it fails', async () => {
    const { company } = await onboarded(room, server);
    const failing = inTransaction(database.db, async (tx) => {
      await room.connections.requireReauthorization(company, 'token_refused', tx);
      throw new Error('killed here');
    });
    await expect(failing).rejects.toThrow('killed here');
    expect(await room.connections.find(company)).toMatchObject({ status: 'active' });
    expect(await told(company)).toEqual([]);
  });

  test('and each return are told once, again and again', async () => {
    const { company, token } = await onboarded(room, server);
    expect(await told(company)).toEqual([]);
    server.revoke(token);
    await alter(database.db, company, DUE);
    await room.manager.refresh(company).catch(() => undefined);
    const again = () => room.onboarding.onboard({ ...company, refreshToken: new Secret(server.issue(company.companyId)) });
    await again();
    await room.connections.requireReauthorization(company, 'access_token_refused');
    await room.connections.pause(company);
    await again();
    await expect(again()).rejects.toMatchObject({ code: 'already_onboarded' });
    expect(await told(company)).toEqual([lost('token_refused'), restored, lost('access_token_refused'), restored]);
  });

  test('of an earlier life is no business of a company that comes back', async () => {
    const { company } = await onboarded(room, server);
    await room.connections.requireReauthorization(company, 'token_refused');
    await room.connections.remove(company, { name: 'test', role: 'admin' });
    await room.onboarding.onboard({ ...company, refreshToken: new Secret(server.issue(company.companyId)) });
    expect(await told(company)).toEqual([lost('token_refused')]);
  });

  test('says nothing of the service: no token and no text of it is kept', async () => {
    const { company, token } = await onboarded(room, server);
    server.misdeeds.push({
      kind: 'answer',
      status: 400,
      body: { error: 'invalid_grant', error_description: `canary-of-the-service ${token}` },
    });
    await alter(database.db, company, EXPIRED);
    await expect(room.manager.sourceFor(company).get()).rejects.toMatchObject({ code: 'reauthorization_required' });
    const { rows } = await database.db.pool.query<{ row: string }>('SELECT n::text AS row FROM muster.notifications n');
    expect(rows).toHaveLength(1);
    expect(rows[0]!.row).not.toMatch(/canary|refresh-token|access-token/);
  });
});

describe('the end of a run', () => {
  /** A run of the company that is worked on and ends. */
  async function run(company: CompanyKey, status: 'succeeded' | 'failed' | 'cancelled', code?: ErrorCode): Promise<string> {
    const { id } = await database.db.prisma.run.create({ data: { ...company, trigger: 'manual', mode: 'full' } });
    const claimed = (await claimRun(database.db, { id, worker: 'a worker' }))!;
    await finishRun(database.db, claimed, status, code === undefined ? undefined : { code, message: 'canary message' });
    // A worker that was frozen ends it again: it is over.
    await finishRun(database.db, claimed, 'failed', { code: 'internal_error', message: 'late' });
    return id;
  }

  test('is told when runs begin to fail, and when they succeed again', async () => {
    const { company } = await onboarded(room, server);
    await run(company, 'succeeded');
    const failed = await run(company, 'failed', 'walks_failed');
    await run(company, 'failed', 'walks_failed');
    await run(company, 'cancelled');
    const recovered = await run(company, 'succeeded');
    await run(company, 'succeeded');
    const failedAgain = await run(company, 'failed', 'internal_error');
    expect(await told(company)).toEqual([
      { type: 'run_failed', run_id: failed, reason: 'walks_failed' },
      { type: 'run_recovered', run_id: recovered },
      { type: 'run_failed', run_id: failedAgain, reason: 'internal_error' },
    ]);
  });

  test('is told of each company by itself', async () => {
    const [one, other] = [newCompany(), newCompany()];
    const failed = await run(one, 'failed', 'walks_failed');
    await run(other, 'succeeded');
    expect([await told(one), await told(other)]).toEqual([[expect.objectContaining({ run_id: failed })], []]);
  });

  test.each(['reauthorization_required', 'access_token_refused', 'company_not_found'] as const)(
    'is not told when %s was the reason',
    async (code) => {
      const company = newCompany();
      await run(company, 'failed', code);
      await run(company, 'succeeded');
      expect(await told(company)).toEqual([]);
    },
  );

  test('is not told while the run waits to retry', async () => {
    const company = newCompany();
    const { id } = await database.db.prisma.run.create({ data: { ...company, trigger: 'manual', mode: 'full' } });
    const claimed = (await claimRun(database.db, { id, worker: 'a worker' }))!;
    await postponeRun(database.db, { ...claimed, delaySeconds: 10, error: { code: 'walks_failed', message: 'later' } });
    expect(await told(company)).toEqual([]);
  });

  test('is one event, however often it is reported', async () => {
    const company = newCompany();
    const { id } = await database.db.prisma.run.create({ data: { ...company, trigger: 'manual', mode: 'full' } });
    const claimed = (await claimRun(database.db, { id, worker: 'a worker' }))!;
    const outcomes = await inProcesses(8, (db) =>
      finishRun(db, claimed, 'failed', { code: 'walks_failed', message: 'canary message' }),
    );
    expect(outcomes.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 'fulfilled'));
    expect(await told(company)).toHaveLength(1);
  });
});
