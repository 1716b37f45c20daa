import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { ServerPrograms } from '../../src/embedded/embedded-cluster.js';

/** Debian keeps each major version in a folder of its own. */
const DEBIAN = '/usr/lib/postgresql';

/**
 * The newest PostgreSQL that the machine's own packages installed: the server that users have, with JIT. `TEST_POSTGRES_BIN` names the
 * folder of another one. Throws where there is none, with what to do.
 */
export function stockPrograms(): ServerPrograms {
  const folder = stockFolder();
  if (folder === undefined)
    throw new Error('No PostgreSQL is installed here: apt-get install postgresql, or name its programs in TEST_POSTGRES_BIN');
  return { folder, initdb: join(folder, 'initdb'), postgres: join(folder, 'postgres'), locale: ['--locale=C.UTF-8'] };
}

/** The folder of these programs; undefined where there are none. */
export function stockFolder(): string | undefined {
  const named = process.env['TEST_POSTGRES_BIN'];
  if (named) return named;
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).toSorted((a, b) => Number(b) - Number(a)) : [];
  return versions.map((version) => join(DEBIAN, version, 'bin')).find((bin) => existsSync(join(bin, 'postgres')));
}
