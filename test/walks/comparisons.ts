import { inject } from 'vitest';
import { skipUnchanged } from '../../src/unchanged/skip-unchanged.js';
import { type Comparisons, compareEverything } from '../../src/walks/comparison.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** Walks compare every record with the mirror, as if there were no room `unchanged`. */
    comparesEverything: true | undefined;
  }
}

/** The comparisons of walks in this project of vitest.config.ts: a worker's, or those that leave nothing uncompared. */
export function projectComparisons(): Comparisons {
  return inject('comparesEverything') ? compareEverything : skipUnchanged;
}
