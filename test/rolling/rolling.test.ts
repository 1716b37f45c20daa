import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { shuffled } from '../campaign/chaos-world.js';
import { as, makeRole, ownedDatabase } from '../machines/database-roles.js';
import { randomOf } from '../pagers/shifting-list.js';
import { redisUrl } from '../support/redis.js';
import { Fleet } from './fleet.js';
import { checkOutVersionBefore, type EarlierCheckout } from './version-before.js';

// Two versions run side by side. In each round every process of a fleet is exchanged for one of this version, one by one, and then for one of the version
// before: while companies are synced, tokens refreshed, and APIs read. `UPGRADE_ROUNDS` says how many rounds, `FIRST_SEED` draws another order.

const ROUNDS = Number(process.env['UPGRADE_ROUNDS'] ?? 20);
const SEED = Number(process.env['FIRST_SEED'] ?? 1);
const CHECKOUT = fileURLToPath(new URL('../../', import.meta.url));

let before: EarlierCheckout;

beforeAll(() => {
  before = checkOutVersionBefore();
});
afterAll(() => before?.remove());

interface Installation {
  readonly queue: string;
  readonly redis: string | undefined;
  /** Whether `muster migrate` runs before the processes are exchanged, and they have a role without the right to migrate. */
  readonly isMigratedFirst: boolean;
}

describe.each<Installation>([
  { queue: 'PostgreSQL', redis: undefined, isMigratedFirst: true },
  { queue: 'Redis', redis: redisUrl(), isMigratedFirst: false },
])('with the queue in $queue', ({ queue, redis, isMigratedFirst }) => {
  const isMissing = queue === 'Redis' && redis === undefined;

  test.skipIf(isMissing)(`a fleet is exchanged forwards and back, ${ROUNDS} times (seed ${SEED})`, async () => {
    const folders = { before: before.folder, now: CHECKOUT };
    const random = randomOf(SEED * 7_919);
    const role = isMigratedFirst ? await makeRole() : undefined; // dropped after the database, in which it has rights
    const { url, owner } = await ownedDatabase();
    const runtime = role === undefined ? undefined : { role, url: as(role, url) };
    const fleet = await Fleet.open({ folders, owner, runtime, redisUrl: redis });
    try {
      if (isMigratedFirst) await fleet.migrate('now');
      let views: Record<string, string> | undefined;
      for (let round = 1; round <= ROUNDS; round += 1) {
        for (const version of ['now', 'before'] as const)
          for (const slot of shuffled(fleet.slots, random)) {
            const signal = random(3) === 0 ? 'SIGKILL' : 'SIGTERM';
            await fleet.exchange(slot, version, signal, random(2) === 0 ? 'start first' : 'end first');
          }
        // In the first round the newer version may have extended views.
        views ??= await fleet.views();
      }
      expect(await fleet.settle()).toEqual([]);
      expect(await fleet.views()).toEqual(views);
      // A killed process may have sent a refresh token whose answer is lost with it. No other authorization may end.
      expect(fleet.lost.filter((reason) => reason !== 'refresh_outcome_unknown')).toEqual([]);
      expect(fleet.deployment.sandbox.reusedRefreshTokens).toBeLessThanOrEqual(fleet.lost.length);
      if (isMigratedFirst) expect(fleet.slots.flatMap(({ applied }) => applied)).toEqual([]);
      const { answered, dropped } = fleet.readers;
      const drops = `${answered} answers, ${dropped} requests dropped by processes that announced no end`;
      console.info(
        `${queue}: ${ROUNDS * 10} exchanges, ${drops}, ${fleet.feed.read.length} changes read, ${fleet.lost.length} authorizations lost`,
      );
    } finally {
      await fleet.close();
    }
  });
});
