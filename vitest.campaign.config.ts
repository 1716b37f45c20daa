import { defineConfig } from 'vitest/config';

/** Campaigns: many randomized rounds, kill -9 and clock jumps. Their counts come from the environment, see each file. */
export default defineConfig({
  test: {
    include: ['test/campaign/**/*.test.ts'],
    globalSetup: 'test/support/global-setup.ts',
    pool: 'forks',
    fileParallelism: false,
    testTimeout: 3_600_000,
    hookTimeout: 120_000,
  },
});
