import { defineConfig } from 'vitest/config';

/** The package of `muster dbt init`, by dbt itself, and exported files, by pyarrow. They need Python and a network, which a newcomer's `npm test` does not. */
export default defineConfig({
  test: {
    include: ['test/dbt/**/*.test.ts'],
    globalSetup: 'test/support/global-setup.ts',
    pool: 'forks',
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
