import { defineConfig, type TestProjectConfiguration } from 'vitest/config';
import { longestFirst } from './test/support/longest-first.js';

/**
 * Everything but deployments, commands of the CLI, foreign parts and campaigns, which have configurations and scripts of their own (CONTRIBUTING.md): what a newcomer waits for.
 *
 * Files with a process of their own each, which costs two seconds of a processor: they measure memory or the event loop, start servers that a process has one of,
 * or make words secrets, which are redacted from then on. All others
 * share one process for each of vitest's workers, so that the modules are read once. Nothing may leak from one of them into the
 * next: a file closes what it opens (closing its database fails while a connection is open), and gives back what it replaces.
 */
const OWN_PROCESS = ['config/config', 'core/free-buffers', 'embedded/embedded-server', 'walks/pass-memory'].map(
  (path) => `test/${path}.test.ts`,
);

/**
 * Walks have to be right whatever need not be compared. These files ask the project how to compare (test/walks/comparisons.ts), and
 * `npm run test:comparing` runs them with everything compared.
 */
const COMPARING = ['test/walks/**/*.test.ts', 'test/erasure/forget-children.test.ts', 'test/runs/takeover.test.ts'];
/** Files of test/walks that ask nothing of the kind. */
const NOT_COMPARING = ['answer-memory', 'judge', 'pass-memory', 'simulation', 'verification', 'walk-store'];

/** By what they took on two quiet cores: those that wait, then those that compute for more than five seconds and are small, so that they would come last. */
const LONGEST = [
  'jobs/jobs',
  'jobs/queue-guard',
  'embedded/embedded-server',
  'jobs/start-stop',
  'walks/lessons',
  'unchanged/simulation',
  'warehouse/nothing-lost',
  'walks/simulation',
];

const SUITE: TestProjectConfiguration[] = [
  {
    extends: true,
    test: {
      name: 'shared',
      include: ['test/**/*.test.ts'],
      exclude: [
        'test/campaign/**',
        'test/chart/**',
        'test/cli/{local,operate,serve}/**',
        'test/contract/**',
        'test/dbt/**',
        'test/foreign/**',
        'test/large/**',
        'test/machines/**',
        'test/monitoring/**',
        'test/pages/**',
        'test/process/**',
        'test/rolling/**',
        'test/schedules/**',
        'test/shapes/**',
        'test/versions/**',
        ...OWN_PROCESS,
      ],
      isolate: false,
      setupFiles: ['test/support/property-seed.ts', 'test/support/each-file.ts'],
    },
  },
  { extends: true, test: { name: 'own', include: OWN_PROCESS, setupFiles: 'test/support/property-seed.ts' } },
];

const COMPARING_EVERYTHING: TestProjectConfiguration[] = [
  {
    extends: true,
    test: {
      name: 'comparing everything',
      include: COMPARING,
      exclude: NOT_COMPARING.map((name) => `test/walks/${name}.test.ts`),
      isolate: false,
      provide: { comparesEverything: true },
    },
  },
];

export default defineConfig({
  test: {
    globalSetup: 'test/support/global-setup.ts',
    env: { TEST_DATA: 'memory' },
    pool: 'forks',
    maxWorkers: 4, // many wait for sweeps, limits and processes more than they compute
    sequence: { sequencer: longestFirst(...LONGEST) },
    testTimeout: 600_000, // against a hang; how fast something is, no test says
    hookTimeout: 600_000,
    restoreMocks: true,
    projects: process.env['COMPARE_EVERYTHING'] ? COMPARING_EVERYTHING : SUITE,
  },
});
