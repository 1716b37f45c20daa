import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/campaign/**', 'test/foreign/**'],
    globalSetup: 'test/support/global-setup.ts',
    pool: 'forks', // a test may not see another file's listeners, timers or open connections
    maxWorkers: 2,
    testTimeout: 90_000, // against a hang; how fast something is, no test says
    hookTimeout: 120_000,
  },
});
