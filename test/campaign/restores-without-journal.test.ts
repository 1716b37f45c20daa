import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { BackupRoom, ROTATIONS, randomOfSeed, SEEDS, SETTLE_MS } from './backup-room.js';
import { IS_LONG } from './share.js';

// Backups whose refresh tokens were spent long ago are restored in place while companies are synced, and nothing has the newer tokens.

/** A short search takes the first one. */
const CASES = [
  ['processes run on', false],
  ['processes are stopped', true],
] as const;

let room: BackupRoom;
beforeAll(async () => {
  room = await BackupRoom.open();
});
afterEach(() => room.uninstall());
afterAll(() => room.close());

describe.each(SEEDS)('seed %i', (seed) => {
  const random = randomOfSeed(seed);

  test.each(CASES.slice(0, IS_LONG ? 2 : 1))(
    'in place, without a journal, while %s: three companies are lost at most, and a person is told',
    async (_, isStopped) => {
      const installation = await room.install({ random, journal: false });
      await installation.rotate(ROTATIONS);
      if (isStopped) await installation.stop();
      await room.restoreInPlace(installation);
      if (isStopped) await installation.start();
      await installation.issue('tokens_held');
      await sleep(SETTLE_MS);
      expect(await installation.lost()).toBeLessThanOrEqual(3);
      expect(installation.reused).toBeLessThanOrEqual(3);
    },
  );
});
