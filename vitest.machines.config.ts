import { defineConfig } from 'vitest/config';

/**
 * The customer's machine: poolers, servers in other modes, full, away or with other passwords, roles without rights, authorization
 * servers that others wrote. A file starts the real thing and ends it. `docs/requirements.md` has a line for each.
 */
export default defineConfig({
  test: {
    include: ['test/machines/**/*.test.ts'],
    globalSetup: 'test/support/global-setup.ts',
    pool: 'forks',
    maxWorkers: 4, // they wait for sweeps and deaths more than they compute
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
