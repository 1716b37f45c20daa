import { inject } from 'vitest';

/**
 * A Redis database for this test file, or undefined where there is no redis-server: `describe.skipIf(!redisUrl())`. The run
 * then says at its end that this half is missing, and in CI it fails. Empty it first: the file that ran before in the same
 * worker of vitest had it too.
 */
export function redisUrl(): string | undefined {
  const server = inject('redis');
  return server && `${server}/${Number(process.env.VITEST_POOL_ID ?? 0) % 16}`;
}
