import { defineConfig } from 'vitest/config';
import { longestFirst } from './test/support/longest-first.js';

const LONGEST = [
  'up',
  'silence',
  'night-export',
  'sandbox-lessons',
  'odd-token-answers',
  'start-stop',
  'forget-death',
  'worker-death',
  'issues',
  'readme',
  'large-readers',
  'proxies',
  'copies',
];

/**
 * Muster as it is deployed: api, workers and `up` as processes that are killed, stopped, starved and started again, the README's commands among them. A start
 * costs a second of a processor, so these cost half as much as all of `npm test`.
 */
export default defineConfig({
  test: {
    include: ['test/process/**/*.test.ts'],
    globalSetup: 'test/support/global-setup.ts',
    pool: 'forks',
    maxWorkers: 6, // they wait for sweeps and deaths more than they compute
    sequence: { sequencer: longestFirst(...LONGEST.map((name) => `process/${name}`)) },
    testTimeout: 600_000, // against a hang; how fast something is, no test says
    hookTimeout: 600_000,
    restoreMocks: true,
  },
});
