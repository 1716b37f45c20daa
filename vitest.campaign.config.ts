import { defineConfig } from 'vitest/config';

/**
 * Campaigns: many randomized rounds, kill -9 and clock jumps. Their counts come from the environment, see each file. The
 * simulations are part of the suite as well, with fewer seeds.
 */
export default defineConfig({
  test: {
    include: ['test/campaign/**/*.test.ts', 'test/{unchanged,walks}/simulation*.test.ts'],
    env: { SIMULATION_SEEDS: '500' },
    globalSetup: 'test/support/global-setup.ts',
    pool: 'forks',
    fileParallelism: false,
    testTimeout: 3_600_000,
    hookTimeout: 120_000,
  },
});
