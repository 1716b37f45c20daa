import { defineConfig } from 'vitest/config';

/**
 * Schedules of lists at scale and in real time: hours of a thousand companies in a time of their own, and processes that are killed while lists come every
 * minute. They cost minutes, so `npm run check:release` has them and `npm test` has test/runs/list-syncs.test.ts.
 */
export default defineConfig({
  test: {
    include: ['test/schedules/**/*.test.ts'],
    globalSetup: 'test/support/global-setup.ts',
    pool: 'forks',
    maxWorkers: 2, // one waits for minutes to pass
    testTimeout: 1_200_000, // against a hang; how fast something is, no test says
    hookTimeout: 600_000,
  },
});
