import { defineConfig } from 'vitest/config';
import { longestFirst } from './test/support/longest-first.js';

/** All that takes a browser, which is a real one, over a real service, database and queue: what a person does from end to end. */
export default defineConfig({
  test: {
    // With a folder for pictures of every page, these are made, and nothing is tested.
    include: [process.env.SCREENSHOTS ? 'test/pages/screenshots.ts' : 'test/pages/**/*.test.ts'],
    globalSetup: 'test/support/global-setup.ts',
    pool: 'forks',
    isolate: false,
    setupFiles: 'test/support/each-file.ts',
    maxWorkers: 3, // a person waits more than a browser computes
    sequence: { sequencer: longestFirst('pages/accessibility', 'pages/tour') },
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
