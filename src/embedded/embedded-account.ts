import { execFile } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { MusterError } from '../core/errors.js';

const run = promisify(execFile);

/** Holds nothing from this process, because the account of the server can read the server's environment. */
export const SERVER_ENVIRONMENT = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LC_ALL: 'C',
  TZ: 'UTC',
};

export function embeddedDatabaseFailed(message: string, cause?: unknown): MusterError {
  return new MusterError('embedded_database_failed', message, { cause });
}

/** The account of the server's programs. Put `prefix` before a command, and `ids` into the options of spawn. */
export interface Account {
  readonly prefix: readonly string[];
  readonly ids: { readonly uid?: number; readonly gid?: number };
  /** The owner of the data; undefined if it is the user of this process. */
  readonly owner?: { readonly uid: number; readonly gid: number };
}

/**
 * PostgreSQL refuses to run as root. An ordinary user runs it under its own account; root runs it as the owner of existing data,
 * else as the account `postgres`, else as the system's unprivileged account. That account must be able to pass through the parents of
 * `paths`, which folders like /root often prevent. On Linux `setpriv` then gives the server, and only it, a capability to
 * pass. If that fails too, throws `embedded_database_failed` and names the obstructing folder.
 */
export async function serverAccount(paths: readonly string[], initdb: string, data: string): Promise<Account> {
  if (process.getuid?.() !== 0) return { prefix: [], ids: {} };
  const owner = existsSync(data) ? statSync(data) : await firstAccount(['postgres', 'nobody']);
  const { uid, gid } = owner;

  const plain: Account = { prefix: [], ids: { uid, gid }, owner: { uid, gid } };
  if (await canUse(plain, paths, initdb)) return plain;
  const capability = '+dac_override';
  const privileged: Account = {
    prefix: [
      'setpriv',
      `--reuid=${uid}`,
      `--regid=${gid}`,
      '--clear-groups',
      `--inh-caps=${capability}`,
      `--ambient-caps=${capability}`,
      '--securebits=+no_setuid_fixup', // without it, access(2) checks initdb as the real user, without capabilities
    ],
    ids: {},
    owner: { uid, gid },
  };
  if (await canUse(privileged, paths, initdb)) return privileged;
  throw embeddedDatabaseFailed(
    `The embedded PostgreSQL does not run as root, and the account it runs as (uid ${uid}) may not pass through ${await obstacle(plain, paths)}. ` +
      'Allow that (chmod o+x), or set MUSTER_HOME to a folder below passable ones, or start Muster as an ordinary user, or set DATABASE_URL.',
  );
}

async function firstAccount(names: readonly string[]): Promise<{ uid: number; gid: number }> {
  for (const name of names) {
    try {
      const [uid, gid] = await Promise.all(['-u', '-g'].map(async (flag) => Number((await run('id', [flag, name])).stdout)));
      if (uid && gid) return { uid, gid };
    } catch {
      // This account does not exist: try the next one.
    }
  }
  throw embeddedDatabaseFailed(
    `The embedded PostgreSQL does not run as root, and there is no account ${names.join(' or ')} to run it as. ` +
      'Create one (useradd postgres), or start Muster as an ordinary user, or set DATABASE_URL.',
  );
}

function canPass(account: Account, paths: readonly string[]): Promise<boolean> {
  return succeeds(account, 'for path; do cd "$path" || exit 1; done', paths);
}

/** Also starts initdb, which checks itself with access(2). The result may differ from what the kernel permits, and from `test -r`. */
async function canUse(account: Account, paths: readonly string[], initdb: string): Promise<boolean> {
  const script = 'said=$("$1" --version 2>&1) || exit 1; case $said in *"invalid binary"*) exit 1 ;; esac';
  return (await canPass(account, paths)) && succeeds(account, script, [initdb]);
}

/** Tries the account out, because modes, groups, access lists and mounts all affect its rights. */
function succeeds({ prefix, ids }: Account, script: string, operands: readonly string[]): Promise<boolean> {
  const [file = '', ...args] = [...prefix, '/bin/sh', '-c', script, 'sh', ...operands];
  return run(file, args, { ...ids, cwd: '/', env: SERVER_ENVIRONMENT }).then(
    () => true,
    () => false,
  );
}

/** The topmost folder that the account may not pass. */
async function obstacle(account: Account, paths: readonly string[]): Promise<string> {
  for (const path of paths) {
    const parents = [path];
    for (let parent = dirname(path); parent !== parents[0]; parent = dirname(parent)) parents.unshift(parent);
    for (const parent of parents) if (!(await canPass(account, [parent]))) return parent;
  }
  return paths.join(' or ');
}
