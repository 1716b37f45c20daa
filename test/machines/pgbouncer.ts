import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { anyPort } from '../support/port.js';
import { waitFor } from '../support/wait-for.js';

/** Another version may be tried: Debian's is 1.18, the first with prepared statements behind a pool of transactions 1.21. */
const PROGRAM = process.env.PGBOUNCER ?? 'pgbouncer';

export interface Pooler {
  /** The same database, by way of the pooler. */
  through(url: string): string;
  close(): Promise<void>;
}

/**
 * A PgBouncer before the PostgreSQL of this address. `settings` are added to its file, which is as the package brings it
 * otherwise.
 */
export async function startPgBouncer(
  serverUrl: string,
  mode: 'session' | 'transaction',
  settings: Record<string, string> = {},
): Promise<Pooler> {
  const server = new URL(serverUrl);
  const folder = mkdtempSync(join(tmpdir(), 'muster-pgbouncer-'));
  const port = anyPort();
  const file = join(folder, 'pgbouncer.ini');
  const account = `user=${server.username} password=${server.password}`;
  const lines = {
    listen_addr: '127.0.0.1',
    listen_port: String(port),
    unix_socket_dir: '',
    auth_type: 'any',
    pool_mode: mode,
    default_pool_size: mode === 'session' ? '100' : '20',
    max_client_conn: '400',
    // As root it wants the name of somebody else to run as.
    ...(process.getuid?.() === 0 && { user: 'nobody' }),
    ...settings,
  };
  const written = Object.entries(lines).map(([name, value]) => `${name} = ${value}`);
  const text = [`[databases]`, `* = host=${server.hostname} port=${server.port} ${account}`, `[pgbouncer]`, ...written, ''];
  writeFileSync(file, text.join('\n'));
  chmodSync(folder, 0o755);
  const child = spawn(PROGRAM, [file], { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise<void>((resolve, reject) => void child.on('exit', () => resolve()).on('error', reject));
  const log = logOf(child);
  await Promise.race([ended.then(() => Promise.reject(new Error(`PgBouncer ended: ${log()}`))), listens(port)]);
  return {
    through: (url) => {
      const pooled = new URL(url);
      pooled.hostname = '127.0.0.1';
      pooled.port = String(port);
      return pooled.href;
    },
    close: async () => {
      child.kill('SIGKILL');
      await ended;
      rmSync(folder, { recursive: true });
    },
  };
}

function logOf(child: ChildProcess): () => string {
  let log = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (text) => (log += String(text)));
  return () => log;
}

async function listens(port: number): Promise<void> {
  await waitFor(
    () =>
      new Promise<boolean>((resolve) => {
        const socket = connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false));
        socket.on('connect', () => socket.destroy());
      }),
    { what: 'PgBouncer to listen' },
  );
}
