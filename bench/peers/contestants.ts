import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadByMuster } from './load-by-muster.js';

const HERE = fileURLToPath(new URL('.', import.meta.url));

/** What is to be loaded, and what is a contestant's own: an empty database and an empty folder. */
export interface Task {
  readonly providerUrl: string;
  readonly companyIds: readonly string[];
  readonly pageSize: number;
  readonly databaseUrl: string;
  readonly folder: string;
}

export interface Contestant {
  readonly name: string;
  /** Whose rows are counted at the end. */
  readonly table: string;
  /** Loads everything in processes of its own, and resolves when all is in the database. The second load of a task finds what the first left. */
  load(task: Task): Promise<void>;
}

/** The peers that are written in Python, by the interpreter that has requirements.txt. */
export function pythonPeers(python: string): Contestant[] {
  const dlt =
    (script: string, ...args: string[]) =>
    (task: Task) =>
      shell(task, '"$@"', python, join(HERE, script), ...args);
  const target = join(dirname(python), 'target-postgres');
  const singer = (copies: boolean) => async (task: Task) => {
    const settings = join(task.folder, 'target.json');
    writeFileSync(settings, JSON.stringify(targetSettings(task, copies)));
    await shell(task, '"$1" "$2" | "$3" --config "$4"', python, join(HERE, 'singer_tap.py'), target, settings);
  };
  return [
    { name: 'dlt 1.26, rest_api source, defaults', table: 'dlt_defaults.employees', load: dlt('dlt_defaults.py') },
    { name: 'dlt 1.26, expert: Arrow and CSV', table: 'dlt_expert_csv.employees', load: dlt('dlt_expert.py', 'csv') },
    { name: 'dlt 1.26, expert: Arrow and ADBC', table: 'dlt_expert_parquet.employees', load: dlt('dlt_expert.py', 'parquet') },
    { name: 'Singer, target-postgres', table: 'singer.employees', load: singer(false) },
    { name: 'Singer, target-postgres, use_copy', table: 'singer.employees', load: singer(true) },
  ];
}

export const MUSTER: Contestant = { name: 'Muster', table: 'mirror.employees', load: loadByMuster };

function targetSettings({ databaseUrl }: Task, copies: boolean): object {
  const { hostname, port, username, password, pathname } = new URL(databaseUrl);
  return {
    host: hostname,
    port: Number(port),
    user: username,
    password: decodeURIComponent(password),
    database: pathname.slice(1),
    default_target_schema: 'singer',
    use_copy: copies,
  };
}

/** Ten times what the slowest takes for the largest size. */
const LONGEST_LOAD_MS = 30 * 60_000;

/** Runs a line of bash with these arguments; what it prints goes into the task's folder. */
async function shell(task: Task, line: string, ...args: string[]): Promise<void> {
  const log = openSync(join(task.folder, 'log'), 'a');
  const child = spawn('bash', ['-euo', 'pipefail', '-c', line, 'bash', ...args], {
    cwd: task.folder,
    detached: true,
    stdio: ['ignore', log, log],
    env: {
      PATH: process.env['PATH'],
      HOME: task.folder,
      STATE: task.folder,
      PROVIDER_URL: task.providerUrl,
      DATABASE_URL: task.databaseUrl,
      COMPANIES: JSON.stringify(task.companyIds),
      PAGE_SIZE: String(task.pageSize),
      RUNTIME__DLTHUB_TELEMETRY: 'false',
    },
  });
  // With all that it has started.
  const deadline = setTimeout(() => process.kill(-child.pid!, 'SIGKILL'), LONGEST_LOAD_MS);
  const [code] = (await once(child, 'exit')) as [number | null];
  clearTimeout(deadline);
  if (code !== 0) throw new Error(`${args.join(' ')} failed with ${code}: see ${join(task.folder, 'log')}`);
}
