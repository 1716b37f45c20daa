import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pythonEnvironment, runProgram } from '../support/python-environment.js';

const DBT_MS = 300_000;

/** Runs dbt on the package in a folder, whose models go into the database at the address. */
export async function dbtIn(
  dir: string,
  url: string,
): Promise<(...args: string[]) => Promise<{ code: number | null; output: string }>> {
  const programs = await pythonEnvironment(fileURLToPath(new URL('requirements.txt', import.meta.url)));
  const { hostname, port, username, password, pathname } = new URL(url);
  const env = {
    PATH: process.env.PATH,
    HOME: dirname(dir),
    PGHOST: hostname,
    PGPORT: port,
    PGUSER: username,
    PGPASSWORD: decodeURIComponent(password),
    PGDATABASE: pathname.slice(1),
    DBT_SEND_ANONYMOUS_USAGE_STATS: 'false',
  };
  return (...args) =>
    runProgram(
      join(programs, 'dbt'),
      ['--no-use-colors', ...args, '--project-dir', dir, '--profiles-dir', dir],
      env,
      DBT_MS,
      dir,
    );
}
