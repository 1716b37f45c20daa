import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { embeddedDatabaseFailed } from './embedded-account.js';

/** A link that belongs in the package of the server's programs: `target` is the link, `source` the file. Both are relative to the package. */
interface Link {
  readonly source: string;
  readonly target: string;
}

/**
 * Makes the links among the server's libraries that are missing. npm packages hold no links, so the package makes them by an install script,
 * which does not run with `npm ci --ignore-scripts` or where npm is set to run no scripts of dependencies; without them no program of the server starts.
 * Throws `embedded_database_failed` where the folder cannot be written.
 */
export function linkLibraries(packageFolder: string): void {
  const list = join(packageFolder, 'native/pg-symlinks.json');
  if (!existsSync(list)) return;
  for (const { source, target } of JSON.parse(readFileSync(list, 'utf8')) as readonly Link[]) {
    const link = join(packageFolder, target);
    if (existsSync(link)) continue;
    try {
      mkdirSync(dirname(link), { recursive: true });
      symlinkSync(relative(dirname(link), join(packageFolder, source)), link);
    } catch (cause) {
      // Another process that starts at this moment makes the same link.
      const { code, syscall } = cause as NodeJS.ErrnoException;
      if (code === 'EEXIST' && syscall === 'symlink') continue;
      throw embeddedDatabaseFailed(
        `The embedded PostgreSQL was installed without its install script, and ${link} cannot be made here. ` +
          'Run `npm rebuild` once as the owner of that folder, or set DATABASE_URL to a PostgreSQL 15 or newer.',
        cause,
      );
    }
  }
}
