import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Installation } from '../process/installation.js';
import { BackupRoom, ROTATIONS, randomOfSeed, SEEDS, SETTLE_MS } from './backup-room.js';
import { IS_LONG } from './share.js';

// Backups whose refresh tokens were spent long ago are restored while companies are synced, and a journal has the newer tokens. No case may cost a
// company, so the cases of a seed share an installation.

/** A short search leaves the second one out: the last case starts its processes on a restored database, too. */
const IN_PLACE = [
  ['processes run on', false],
  ['processes are stopped', true],
] as const;

let room: BackupRoom;
beforeAll(async () => {
  room = await BackupRoom.open();
});
afterAll(() => room.close());

describe.each(SEEDS)('seed %i', (seed) => {
  const random = randomOfSeed(seed);
  let installation: Installation;
  let journal: string;
  let reusedBefore: number;
  beforeAll(async () => {
    installation = await room.install({ random, journal: true });
    journal = installation.deployment.env['TOKEN_JOURNAL']!;
  });
  beforeEach(async () => {
    await installation.rotate(ROTATIONS);
    reusedBefore = installation.reused;
  });
  afterAll(() => room.uninstall());

  test.each(IN_PLACE.slice(0, IS_LONG ? 2 : 1))('in place, while %s: no company is lost', async (_, isStopped) => {
    if (isStopped) await installation.stop();
    await room.restoreInPlace(installation);
    if (!isStopped) await sleep(random(8_000));
    const restored = JSON.parse(await installation.command('restore-tokens', journal, '--json')) as object;
    expect(restored).toEqual({ restored: installation.companies.length, current: 0, removed: 0, unreadable: 0, torn: 0 });
    if (isStopped) await installation.start();
    await installation.syncAll();
    expect(await installation.lost()).toBe(0);
    expect(installation.reused - reusedBefore).toBeLessThanOrEqual(isStopped ? 0 : 3);
  });

  test('in another database: nothing is asked until a person says what it is, and no company is lost', async () => {
    expect(await room.moveToBackup(installation)).toEqual({ lost: 0, asked: [] });
    await installation.command('restore-tokens', journal);
    await installation.command('adopt');
    await installation.syncAll();
    await sleep(SETTLE_MS);
    expect(await installation.lost()).toBe(0);
    expect(installation.reused - reusedBefore).toBe(0);
  });
});
