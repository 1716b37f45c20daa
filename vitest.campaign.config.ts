import { defineConfig } from 'vitest/config';
import { longestFirst } from './test/support/longest-first.js';

/** These measure shares or times, or go by the clock of a provider, so they have the machine to themselves: they run one at a time, after all others. */
const MEASURING = ['flood', 'request-budget', 'short-tokens'].map((name) => `test/campaign/${name}.test.ts`);

/**
 * The gate (CAMPAIGN_GATE) goes without these, since its other steps find what is grossly wrong there: test/process/barriers, test/process/copies with
 * restores-with-journal, test/oauth/access-token-manager, test/http/answer-memory with test/walks/dense-pages.
 */
const HELD_ELSEWHERE = ['barriers', 'restores-elsewhere', 'token-single-flight', 'greedy-answers'].map(
  (name) => `test/campaign/${name}.test.ts`,
);

const LONGEST = [
  'restores-with-journal',
  'chaos',
  'restores-without-journal',
  'restores-elsewhere',
  'greedy-answers',
  'walk-kill',
  'restarts',
  'grant-kill',
  'privacy',
];

/**
 * Campaigns: many randomized rounds, kill -9 and clock jumps. Their counts come from the environment, see each file. The
 * simulations, the judge and the nights in which no value is lost are part of the suite as well, with fewer seeds. The searching files share one process
 * for each of vitest's workers, as those of `npm test` do (vitest.config.ts).
 */
export default defineConfig({
  test: {
    env: {
      SIMULATION_SEEDS: process.env['SIMULATION_SEEDS'] ?? '500',
      JUDGE_SEEDS: process.env['JUDGE_SEEDS'] ?? process.env['CAMPAIGN_SEEDS'] ?? '2000',
      BUDGET_SEEDS: process.env['BUDGET_SEEDS'] ?? '100',
    },
    globalSetup: 'test/support/global-setup.ts',
    pool: 'forks',
    maxWorkers: 5, // they wait for sweeps and deaths more than they compute
    sequence: { sequencer: longestFirst(...LONGEST.map((name) => `campaign/${name}`)) },
    testTimeout: 3_600_000,
    hookTimeout: 600_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'searching',
          isolate: false,
          setupFiles: 'test/support/each-file.ts',
          include: [
            'test/campaign/**/*.test.ts',
            'test/{unchanged,walks}/simulation*.test.ts',
            'test/walks/judge*.test.ts',
            'test/warehouse/nothing-lost.test.ts',
            'test/http/budget/finding.test.ts',
            'test/oauth/model.test.ts',
          ],
          exclude: process.env['CAMPAIGN_GATE'] ? [...MEASURING, ...HELD_ELSEWHERE] : MEASURING,
        },
      },
      { extends: true, test: { name: 'measuring', include: MEASURING, fileParallelism: false } },
    ],
  },
});
