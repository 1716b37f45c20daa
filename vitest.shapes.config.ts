import { defineConfig } from 'vitest/config';

/** Lists of eleven HR systems over thirty nights each. A shape of them is in the suite of every change (test/large/shape.test.ts). */
export default defineConfig({
  test: {
    include: ['test/shapes/**/*.test.ts'],
    exclude: process.env['BESIDE_DLT'] ? [] : ['test/shapes/beside-dlt.test.ts'],
    globalSetup: 'test/support/global-setup.ts',
    pool: 'forks',
    testTimeout: 1_800_000,
    hookTimeout: 600_000,
  },
});
