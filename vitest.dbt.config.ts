import { defineConfig } from 'vitest/config';

/** The package of `muster dbt init`, by dbt itself, and exported files, by pyarrow. They need Python and a network, which a newcomer's `npm test` does not. */
export default defineConfig({
  test: {
    include: ['test/dbt/**/*.test.ts'],
    globalSetup: 'test/support/global-setup.ts',
    pool: 'forks',
    // A test runs dbt ten times at most. Each run has a limit of its own (test/dbt/run-dbt.ts).
    testTimeout: 3_000_000,
    hookTimeout: 600_000,
  },
});
