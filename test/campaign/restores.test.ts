import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { randomOf } from '../pagers/shifting-list.js';
import { Installation } from '../process/installation.js';
import { BackupServer } from '../support/backup-server.js';
import { anyPort } from '../support/port.js';
import { startMuster } from '../support/process.js';
import { shareOf } from './share.js';

// Backups whose refresh tokens were spent long ago are restored while companies are synced, in place and elsewhere, and a copy runs beside its original.
// `FIRST_SEED` draws other companies and moments; Debian's pg_dump and pg_restore do it, as users have them.

const DRAWS = shareOf(5);
const SEED = Number(process.env.FIRST_SEED ?? 1);
/** How old a backup is: refreshes of each company since. */
const ROTATIONS = Number(process.env.RESTORE_ROTATIONS ?? 200);
/** How long a copy runs beside its original. */
const COPY_SECONDS = Number(process.env.RESTORE_COPY_SECONDS ?? 300);
/** For how long nothing may be lost after that. */
const SETTLE_MS = 1_000 * Number(process.env.RESTORE_SETTLE_SECONDS ?? 20);
const seeds = Array.from({ length: DRAWS }, (_, n) => SEED + n);

let backups: BackupServer;
beforeAll(async () => {
  backups = await BackupServer.start();
});
afterAll(() => backups.server.remove());

describe.each(seeds)('seed %i', (seed) => {
  const random = randomOf(seed * 104_729);
  const file = (installation: Installation) => join(installation.deployment.home, 'muster.dump');
  let opened: Installation | undefined;
  afterEach(async () => {
    await opened?.close();
    opened = undefined;
  });
  const open = async (journal: boolean): Promise<Installation> => {
    const companies = Array.from({ length: 6 + random(6) }, (_, n) => ({ name: `C${n}`, employees: 5 + random(60) }));
    const installation = await Installation.open({ database: await backups.database(), companies, journal });
    opened = installation;
    await backups.dump(installation.databaseUrl, file(installation));
    return installation;
  };

  test.each([
    ['processes run on', false],
    ['processes are stopped', true],
  ])('in place, with the journal, while %s: no company is lost', async (_, isStopped) => {
    const installation = await open(true);
    await installation.rotate(ROTATIONS);
    if (isStopped) await installation.stop();
    await backups.restoreInPlace(installation.databaseUrl, file(installation));
    if (!isStopped) await sleep(random(8_000));
    const journal = installation.deployment.env['TOKEN_JOURNAL']!;
    const restored = JSON.parse(await installation.command('restore-tokens', journal, '--json')) as object;
    expect(restored).toEqual({ restored: installation.companies.length, current: 0, removed: 0, unreadable: 0, torn: 0 });
    if (isStopped) await installation.start();
    await installation.syncAll();
    expect(await installation.lost()).toBe(0);
    expect(installation.reused).toBeLessThanOrEqual(isStopped ? 0 : 3);
  });

  test.each([
    ['processes run on', false],
    ['processes are stopped', true],
  ])('in place, without a journal, while %s: three companies are lost at most, and a person is told', async (_, isStopped) => {
    const installation = await open(false);
    await installation.rotate(ROTATIONS);
    if (isStopped) await installation.stop();
    await backups.restoreInPlace(installation.databaseUrl, file(installation));
    if (isStopped) await installation.start();
    await installation.issue('tokens_held');
    await sleep(SETTLE_MS);
    expect(await installation.lost()).toBeLessThanOrEqual(3);
    expect(installation.reused).toBeLessThanOrEqual(3);
  });

  test.each([true, false])(
    'elsewhere, journal: %s: nothing is asked until a person says what the database is',
    async (journal) => {
      const installation = await open(journal);
      const { deployment } = installation;
      await installation.rotate(ROTATIONS);
      await installation.stop();
      const asked = deployment.sandbox.requests.all().length;
      installation.databaseUrl = await backups.emptyPlace();
      await backups.restore(installation.databaseUrl, file(installation));
      await installation.start();
      await installation.issue('database_copied');
      await sleep(SETTLE_MS);
      expect(await installation.lost()).toBe(0);
      expect(deployment.sandbox.requests.all().length).toBe(asked);
      if (journal) await installation.command('restore-tokens', deployment.env['TOKEN_JOURNAL']!);
      await installation.command('adopt');
      if (journal) await installation.syncAll();
      else await installation.issue('tokens_held');
      await sleep(SETTLE_MS);
      expect(await installation.lost()).toBeLessThanOrEqual(journal ? 0 : 3);
      expect(installation.reused).toBeLessThanOrEqual(journal ? 0 : 3);
    },
  );

  test('a copy beside its original for some minutes: no company is lost', async () => {
    const installation = await open(false);
    const url = await backups.emptyPlace();
    await backups.restore(url, file(installation));
    const settings = { ...installation.commandEnv, DATABASE_URL: url, PORT: String(anyPort()) };
    const copy = ['api', 'worker'].map((role) => startMuster([role], settings));
    await Promise.all(copy.map((running) => running.waitForOutput(/ready: /)));
    const db = new pg.Pool({ connectionString: url, max: 1 });
    for (let second = 0; second < COPY_SECONDS; second += 5) {
      await db.query('UPDATE muster.connections SET next_sync_at = now()');
      await sleep(5_000);
    }
    expect((await db.query('SELECT FROM muster.connections WHERE reauthorization_reason IS NOT NULL')).rowCount).toBe(0);
    await db.end();
    expect(await installation.lost()).toBe(0);
    expect(installation.reused).toBe(0);
    await installation.syncAll();
    for (const running of copy) running.kill('SIGTERM');
    await Promise.all(copy.map(({ exit }) => exit));
  });
});
