import { defineConfig } from 'vitest/config';

/** The alert rules, by Prometheus' own promtool, over metrics of real processes. It needs Go, and the Go module proxy once. */
export default defineConfig({
  test: {
    include: ['test/monitoring/**/*.test.ts'],
    globalSetup: 'test/support/global-setup.ts',
    pool: 'forks',
    isolate: false,
    setupFiles: 'test/support/each-file.ts',
    maxWorkers: 2,
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
