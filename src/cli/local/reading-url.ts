import type { Config } from '../../config/config.js';
import { CommandFailure } from '../exit-code.js';

/** Address of the database, for a command that reads it; an embedded one while a process of Muster has it run. */
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
