import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { pino } from 'pino';
import { startEmbeddedServer } from '../../src/embedded/embedded-server.js';
import { PostgresServer } from '../../test/support/postgres-server.js';
import { stockPrograms } from '../../test/support/stock-postgres.js';
import { type Contestant, MUSTER, pythonPeers, type Task } from './contestants.js';

// npm run bench:peers: Muster beside what loads the same pages into the same PostgreSQL, whole processes from start to end. Makes an
// environment for Python the first time. PEERS_RECORDS names the sizes, BENCH_ROUNDS how often each contestant loads them, in turn with the others.
// With PEERS_ONLY (parts of contestants' names, comma-separated) or BENCH_SERVER=stock (the PostgreSQL that the machine's packages installed)
// nothing is written. Who fails, or takes longer than a load may, is said to have failed, and the others go on: nobody need watch.

const COMPANIES = 4;
const PAGE_SIZE = 500;
const sizes = (process.env['PEERS_RECORDS'] ?? '80000,400000').split(',').map(Number);
const only = process.env['PEERS_ONLY']?.split(',');
const rounds = Number(process.env['BENCH_ROUNDS'] ?? 1);
const isStock = process.env['BENCH_SERVER'] === 'stock';

interface Result {
  readonly name: string;
  readonly records: number;
  /** Seconds; undefined where it failed. */
  readonly first?: number;
  readonly again?: number;
}

const HERE = fileURLToPath(new URL('.', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'muster-peers-'));
const server = isStock ? await startStock() : await startEmbeddedServer({ home: folder, logger: pino({ level: 'silent' }) });
const serverName = `${isStock ? 'stock' : 'embedded'} PostgreSQL ${await serverVersion()}`;
const results: Result[] = [];
try {
  const contestants = [MUSTER, ...preparedPeers()].filter(isAsked);
  for (const records of sizes)
    for (let round = 0; round < rounds; round++)
      for (const contestant of contestants) {
        results.push(await measure(contestant, records));
        if (!only && !isStock) writeFileSync(join(HERE, 'results.md'), markdown(results));
      }
} finally {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}
console.log(markdown(results));
if (results.some(({ again }) => again === undefined)) process.exitCode = 1;

function isAsked({ name }: Contestant): boolean {
  return !only || only.some((part) => name.includes(part));
}

/** It flushes what it commits, as the embedded server does. */
async function startStock(): Promise<{ url: string; stop(): Promise<void> }> {
  const stock = await PostgresServer.start({ programs: stockPrograms(), settings: { fsync: 'on' } });
  return { url: stock.url, stop: () => stock.remove() };
}

async function serverVersion(): Promise<string> {
  const client = new pg.Client(server.url);
  await client.connect();
  const { rows } = await client.query<{ server_version: string }>('SHOW server_version');
  await client.end();
  return rows[0]!.server_version.split(' ')[0]!;
}

/** None, and a word about it, where there is no Python. */
function preparedPeers(): Contestant[] {
  const python = join(HERE, '.venv/bin/python');
  const requirements = join(HERE, 'requirements.txt');
  const peers = pythonPeers(python).filter(isAsked);
  if (peers.length === 0) return peers;
  const run = (program: string, ...args: string[]) => spawnSync(program, args, { stdio: 'inherit' }).status === 0;
  const prepare = (...flags: string[]) =>
    run('python3', '-m', 'venv', ...flags, join(HERE, '.venv')) &&
    run(python, '-m', 'pip', 'install', '--quiet', '--requirement', requirements);
  // Anew, where an installation was broken off.
  if (prepare() || prepare('--clear')) return peers;
  console.error('skipped: the peers need python3 with venv, and their packages from the Python package index');
  return [];
}

async function measure(contestant: Contestant, records: number): Promise<Result> {
  console.error(`${contestant.name}: ${records} records …`);
  const provider = spawn(
    process.execPath,
    ['--import', 'tsx', join(HERE, '../provider.ts'), String(COMPANIES), String(records / COMPANIES)],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  );
  const lines = createInterface({ input: provider.stdout });
  const [line] = await new Promise<RegExpExecArray>((resolve) =>
    lines.on('line', (text) => {
      const match = /(?<=listening )\d+/.exec(text);
      if (match) resolve(match);
    }),
  );
  const providerUrl = `http://127.0.0.1:${line}`;
  const { companies } = (await (await fetch(`${providerUrl}/control`)).json()) as { companies: string[] };
  const name = `peer_${results.length}`;
  const admin = new pg.Client(server.url);
  await admin.connect();
  await admin.query(`CREATE DATABASE ${name}`);
  const task: Task = {
    providerUrl,
    companyIds: companies,
    pageSize: PAGE_SIZE,
    databaseUrl: Object.assign(new URL(server.url), { pathname: `/${name}` }).href,
    folder: join(folder, name),
  };
  mkdirSync(task.folder);
  // Every page is rendered before somebody is measured on it.
  for (const id of companies)
    for (let skip = 0; skip < records / COMPANIES; skip += PAGE_SIZE)
      await (await fetch(`${providerUrl}/api/companies/${id}/employees?skip=${skip}&$take=${PAGE_SIZE}`)).arrayBuffer();
  const load = async () => {
    const began = performance.now();
    await contestant.load(task);
    return (performance.now() - began) / 1_000;
  };
  const times: number[] = [];
  try {
    times.push(await load());
    times.push(await load());
    await requireRows(task, contestant, records);
  } catch (error) {
    console.error(`${contestant.name} failed with ${records} records: ${(error as Error).message}`);
    console.error(readFileSync(join(task.folder, 'log'), 'utf8').slice(-2_000));
    times.length = 0;
  }
  const [first, again] = times;
  await admin.query(`DROP DATABASE ${name} WITH (FORCE)`);
  await admin.query('CHECKPOINT');
  await admin.end();
  provider.stdin.end();
  return { name: contestant.name, records, ...(first && { first }), ...(again && { again }) };
}

async function requireRows({ databaseUrl }: Task, { name, table }: Contestant, records: number): Promise<void> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  const { rows } = await client.query<{ count: string }>(`SELECT count(*) FROM ${table}`);
  await client.end();
  if (Number(rows[0]!.count) !== records) throw new Error(`${name} has ${rows[0]!.count} rows of ${records}`);
}

function markdown(all: readonly Result[]): string {
  const columns = sizes.flatMap((records) => [`${records.toLocaleString('en-US')}, first`, 'again']);
  const names = [...new Set(all.map(({ name }) => name))];
  const cell = (name: string, records: number, load: 'first' | 'again') => {
    const seconds = all.filter((result) => result.name === name && result.records === records).map((result) => result[load]);
    if (seconds.includes(undefined)) return 'failed';
    const median = seconds.toSorted((a, b) => a! - b!)[Math.floor(seconds.length / 2)];
    return median === undefined ? '' : (records / median / 1_000).toFixed(1);
  };
  const rows = names.map((name) => {
    const cells = sizes.flatMap((records) => [cell(name, records, 'first'), cell(name, records, 'again')]);
    return `| ${name} | ${cells.join(' | ')} |`;
  });
  return `# Beside its peers

Thousands of records a second, by the clock from the start of a process until all is in PostgreSQL: ${COMPANIES} companies, pages of ${PAGE_SIZE},
the same provider and server (${serverName}), one contestant at a time, ${rounds === 1 ? 'one round' : `medians of ${rounds} rounds`}. Made by \`npm run bench:peers\` on ${cpus().length} cores (${cpus()[0]!.model.trim()}), Node ${process.versions.node}.

| | ${columns.join(' | ')} |
|---|${columns.map(() => '---:|').join('')}
${rows.join('\n')}

${readFileSync(join(HERE, 'notes.md'), 'utf8')}`;
}
