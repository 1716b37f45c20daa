import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/campaign/**'],
    globalSetup: 'test/support/global-setup.ts',
    pool: 'forks', // a test may not see another file's listeners, timers or open connections
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});
