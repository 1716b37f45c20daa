import { execFile } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { MusterError } from '../core/errors.js';

const run = promisify(execFile);

/** Carries nothing of this process: the account that the server runs as can read the server's environment. */
export const SERVER_ENVIRONMENT = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LC_ALL: 'C',
  TZ: 'UTC',
};

export function embeddedDatabaseFailed(message: string, cause?: unknown): MusterError {
  return new MusterError('embedded_database_failed', message, { cause });
}

/** The account that the server's programs run as: put `prefix` before a command, and `ids` into the options of spawn. */
export interface Account {
  readonly prefix: readonly string[];
  readonly ids: { readonly uid?: number; readonly gid?: number };
  /** The owner of the data; undefined when that is the user of this process. */
  readonly owner?: { readonly uid: number; readonly gid: number };
}

/**
 * PostgreSQL refuses to run as root. An ordinary user runs it as itself; root runs it as the owner of the data where there
 * are some, else as `postgres`, else as `nobody`. That account must be able to pass through the parents of `paths`, and
 * folders like /root or a temporary one often let nobody pass: on Linux `setpriv` then lets the server, and only it, pass by
 * a capability. Where that is not possible either, throws `embedded_database_failed` and names the folder in the way.
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
      '--securebits=+no_setuid_fixup', // initdb asks access(2), which else looks as the real user without capabilities
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
      // No such account: try the next.
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

/** Also starts initdb, which asks access(2) about itself: the answer need not agree with what the kernel lets pass, nor with `test -r`. */
async function canUse(account: Account, paths: readonly string[], initdb: string): Promise<boolean> {
  const script = 'said=$("$1" --version 2>&1) || exit 1; case $said in *"invalid binary"*) exit 1 ;; esac';
  return (await canPass(account, paths)) && succeeds(account, script, [initdb]);
}

/** The account is tried out, since modes, groups, access lists and mounts all have a say in what it may do. */
function succeeds({ prefix, ids }: Account, script: string, operands: readonly string[]): Promise<boolean> {
  const [file = '', ...args] = [...prefix, '/bin/sh', '-c', script, 'sh', ...operands];
  return run(file, args, { ...ids, cwd: '/', env: SERVER_ENVIRONMENT }).then(
    () => true,
    () => false,
  );
}

/** The topmost folder in the way. */
async function obstacle(account: Account, paths: readonly string[]): Promise<string> {
  for (const path of paths) {
    const parents = [path];
    for (let parent = dirname(path); parent !== parents[0]; parent = dirname(parent)) parents.unshift(parent);
    for (const parent of parents) if (!(await canPass(account, [parent]))) return parent;
  }
  return paths.join(' or ');
}
