import { defineConfig } from 'vitest/config';

/** Servers and programs that others wrote. They need the packages of test/foreign, which a newcomer's `npm test` does not install. */
export default defineConfig({
  test: {
    include: ['test/foreign/**/*.test.ts'],
    globalSetup: 'test/support/global-setup.ts',
    pool: 'forks',
    isolate: false,
    setupFiles: 'test/support/each-file.ts',
    maxWorkers: 2,
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
