import { createRequire } from 'node:module';

/** The version of this package. src/core and dist/core are equally deep. */
export const { version: VERSION } = createRequire(import.meta.url)('../../package.json') as { readonly version: string };
