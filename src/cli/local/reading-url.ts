import type { Config } from '../../config/config.js';
import { CommandFailure } from '../exit-code.js';

/** The address of the database for a command that reads it. An embedded database must be running. */
export async function readingUrl({ databaseUrl, home }: Config): Promise<string> {
  if (databaseUrl !== undefined) return databaseUrl;
  const { runningEmbeddedServer } = await import('../../embedded/embedded-server.js');
  const url = runningEmbeddedServer(home);
  if (url === undefined)
    throw new CommandFailure(
      `The embedded PostgreSQL of ${home} does not run: start Muster (\`muster up\`), or set DATABASE_URL.`,
    );
  return url;
}
