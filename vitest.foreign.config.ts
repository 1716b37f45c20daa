import { defineConfig } from 'vitest/config';

/** Walks over servers that others wrote. They need the services of test/foreign, which a newcomer's `npm test` does not start. */
export default defineConfig({
  test: {
    include: ['test/foreign/**/*.test.ts'],
    globalSetup: 'test/support/global-setup.ts',
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 90_000,
    hookTimeout: 120_000,
  },
});
