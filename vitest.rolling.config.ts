import { defineConfig } from 'vitest/config';

/** Two neighbouring versions side by side, as processes. They need the history of the checkout, from which the version before is built. */
export default defineConfig({
  test: {
    include: ['test/rolling/**/*.test.ts'],
    globalSetup: 'test/support/global-setup.ts',
    pool: 'forks',
    testTimeout: 7_200_000, // against a hang; how fast something is, no test says
    hookTimeout: 1_800_000,
  },
});
