import { defineConfig } from 'vitest/config';

/** Generated calls to every operation of the OpenAPI document. They need Python and a network, which a newcomer's `npm test` does not. */
export default defineConfig({
  test: {
    include: ['test/contract/**/*.test.ts'],
    globalSetup: 'test/support/global-setup.ts',
    pool: 'forks',
    // Six runs follow one another in a test. Each ends by itself when it hangs (test/contract/schemathesis.ts).
    testTimeout: 3_000_000,
    hookTimeout: 600_000,
  },
});
