import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { to as copyTo } from 'pg-copy-streams';
import { makeGadgets } from '../test/warehouse/gadgets.js';
import { type Bench, NODE, openBench } from './bench-setup.js';
import type { Measures } from './measures.js';

const MUSTER = fileURLToPath(new URL('../bin/muster', import.meta.url));
const VIEW = 'warehouse.gadgets';

/** Whole processes of `muster export`, each beside one COPY of the same view, whose rows are thrown away. */
export async function measureExport(
  measures: Measures,
  { rounds, giant: records }: { rounds: number; giant: number },
): Promise<void> {
  const bench = await openBench({ companies: 1, records: 10, size: 500, style: 'skip-take' });
  const folder = await mkdtemp(join(tmpdir(), 'muster-bench-export-'));
  try {
    await makeGadgets(bench.pool, records);
    await bench.pool.query('VACUUM ANALYZE mirror.gadgets');
    for (let round = 0; round < rounds; round += 1) {
      for (const format of ['parquet', 'csv', 'ndjson'] as const) {
        const copied = await seconds(() => copy(bench));
        const exported = await seconds(() => runExport(bench, format, join(folder, `gadgets.${format}`)));
        measures.note(`export as ${format}, rows/s`, records / exported);
        measures.note(`export as ${format} / COPY of its view`, copied / exported);
      }
    }
  } finally {
    await bench.stop();
    await rm(folder, { recursive: true });
  }
}

async function copy({ pool }: Bench): Promise<void> {
  const client = await pool.connect();
  const stream = client.query(copyTo(`COPY (SELECT * FROM ${VIEW}) TO STDOUT`));
  for await (const part of stream) void part;
  client.release();
}

async function runExport({ databaseUrl }: Bench, format: string, output: string): Promise<void> {
  const child = spawn(NODE, [MUSTER, 'export', 'gadgets', '--format', format, '--output', output], {
    env: {
      PATH: process.env['PATH'],
      DATABASE_URL: databaseUrl,
      MUSTER_ENCRYPTION_KEYS: `bench:${Buffer.alloc(32, 1).toString('base64')}`,
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`muster export ended with ${code}`);
}

async function seconds(work: () => Promise<void>): Promise<number> {
  const begin = performance.now();
  await work();
  return (performance.now() - begin) / 1_000;
}
