import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { anyPort } from '../support/port.js';
import { startMuster } from '../support/process.js';
import { BackupRoom, ROTATIONS, randomOfSeed, SEEDS, SETTLE_MS } from './backup-room.js';

// Backups are restored into another database, whose processes are a copy of the original: it is gone, or runs beside the copy. No journal has the
// newer tokens.

/** How long a copy runs beside its original. */
const COPY_SECONDS = Number(process.env.RESTORE_COPY_SECONDS ?? 300);

let room: BackupRoom;
beforeAll(async () => {
  room = await BackupRoom.open();
});
afterEach(() => room.uninstall());
afterAll(() => room.close());

describe.each(SEEDS)('seed %i', (seed) => {
  const random = randomOfSeed(seed);

  test('nothing is asked until a person says what the database is, and three companies are lost at most', async () => {
    const installation = await room.install({ random, journal: false });
    await installation.rotate(ROTATIONS);
    expect(await room.moveToBackup(installation)).toEqual({ lost: 0, asked: [] });
    await installation.command('adopt');
    await installation.issue('tokens_held');
    await sleep(SETTLE_MS);
    expect(await installation.lost()).toBeLessThanOrEqual(3);
    expect(installation.reused).toBeLessThanOrEqual(3);
  });

  test('a copy beside its original for some minutes: no company is lost', async () => {
    const installation = await room.install({ random, journal: false });
    const url = await room.restoreElsewhere(installation);
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
