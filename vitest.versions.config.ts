import { defineConfig } from 'vitest/config';

/** Older PostgreSQL servers, which need the packages of test/versions: what their planner makes of our statements. A file starts the servers that it needs. */
export default defineConfig({
  test: {
    include: ['test/versions/**/*.test.ts'],
    pool: 'forks',
    testTimeout: 180_000,
    hookTimeout: 120_000,
  },
});
