import { defineConfig } from 'vitest/config';
import { longestFirst } from './test/support/longest-first.js';

const LONGEST = [
  'process/readme',
  'process/night-export',
  'cli/operate/operator',
  'process/start-stop',
  'process/silence',
  'process/traces',
  'process/copies',
  'process/odd-token-answers',
  'process/worker-death',
  'process/issues',
  'process/large-readers',
  'process/up',
  'process/sandbox-lessons',
  'process/api-examples',
  'process/proxies',
  'process/stopped-queue',
  'process/schema-death',
];

/**
 * Muster as it is deployed: api, workers and `up` as processes that are killed, stopped, starved and started again, the commands of the CLI, and those of the README. A start
 * costs a second of a processor, so these cost half as much as all of `npm test`. The files share one process for each of vitest's workers, as those of
 * `npm test` do (vitest.config.ts): what they test runs in processes of its own.
 */
export default defineConfig({
  test: {
    include: ['test/process/**/*.test.ts', 'test/cli/{local,operate,serve}/**/*.test.ts'],
    globalSetup: 'test/support/global-setup.ts',
    pool: 'forks',
    isolate: false,
    setupFiles: 'test/support/each-file.ts',
    maxWorkers: 6, // they wait for sweeps and deaths more than they compute
    sequence: { sequencer: longestFirst(...LONGEST) },
    testTimeout: 600_000, // against a hang; how fast something is, no test says
    hookTimeout: 600_000,
    restoreMocks: true,
  },
});
