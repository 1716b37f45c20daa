import { defineConfig } from 'vitest/config';

/**
 * Muster as it is deployed: api, workers and `up` as processes that are killed, stopped, starved and started again, the README's commands among them. A start
 * costs a second of a processor, so these cost half as much as all of `npm test`.
 */
export default defineConfig({
  test: {
    include: ['test/process/**/*.test.ts'],
    globalSetup: 'test/support/global-setup.ts',
    pool: 'forks',
    maxWorkers: 4, // they wait for sweeps and deaths more than they compute
    testTimeout: 600_000, // against a hang; how fast something is, no test says
    hookTimeout: 600_000,
    restoreMocks: true,
  },
});
