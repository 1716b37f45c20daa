import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { BackupRoom, ROTATIONS, randomOfSeed, SEEDS } from './backup-room.js';

// Backups whose refresh tokens were spent long ago are restored in place while companies are synced, and a journal has the newer tokens.

let room: BackupRoom;
beforeAll(async () => {
  room = await BackupRoom.open();
});
afterEach(() => room.uninstall());
afterAll(() => room.close());

describe.each(SEEDS)('seed %i', (seed) => {
  const random = randomOfSeed(seed);

  test.each([
    ['processes run on', false],
    ['processes are stopped', true],
  ])('in place, with the journal, while %s: no company is lost', async (_, isStopped) => {
    const installation = await room.install({ random, journal: true });
    await installation.rotate(ROTATIONS);
    if (isStopped) await installation.stop();
    await room.restoreInPlace(installation);
    if (!isStopped) await sleep(random(8_000));
    const journal = installation.deployment.env['TOKEN_JOURNAL']!;
    const restored = JSON.parse(await installation.command('restore-tokens', journal, '--json')) as object;
    expect(restored).toEqual({ restored: installation.companies.length, current: 0, removed: 0, unreadable: 0, torn: 0 });
    if (isStopped) await installation.start();
    await installation.syncAll();
    expect(await installation.lost()).toBe(0);
    expect(installation.reused).toBeLessThanOrEqual(isStopped ? 0 : 3);
  });
});
