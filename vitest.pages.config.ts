import { defineConfig } from 'vitest/config';

/** All that takes a browser, which is a real one, over a real service, database and queue: what a person does from end to end. */
export default defineConfig({
  test: {
    // With a folder for pictures of every page, these are made, and nothing is tested.
    include: [process.env.SCREENSHOTS ? 'test/pages/screenshots.ts' : 'test/pages/**/*.test.ts'],
    globalSetup: 'test/support/global-setup.ts',
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
