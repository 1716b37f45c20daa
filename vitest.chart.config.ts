import { defineConfig } from 'vitest/config';

/** The Helm chart: what Helm makes of it, whether Kubernetes would take it, and the processes that it describes. Needs Go, which builds Helm, and root. */
export default defineConfig({
  test: {
    include: ['test/chart/**/*.test.ts'],
    globalSetup: 'test/support/global-setup.ts',
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
