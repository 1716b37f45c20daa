import { defineConfig } from 'vitest/config';
import { longestFirst } from './test/support/longest-first.js';

/**
 * What is about size: plans of statements in the database of 10,000 companies, a thousand who watch one run, giant pages, long feeds, many columns and
 * many nights.
 */
export default defineConfig({
  test: {
    include: ['test/large/**/*.test.ts'],
    globalSetup: 'test/support/global-setup.ts',
    pool: 'forks',
    isolate: false,
    setupFiles: 'test/support/each-file.ts',
    maxWorkers: 3, // one waits for most of its time
    sequence: {
      sequencer: longestFirst(
        'large/address-plans',
        'large/list-plans',
        'large/watchers',
        'large/shape',
        'large/small-companies',
      ),
    },
    testTimeout: 900_000,
    hookTimeout: 900_000,
  },
});
