import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { from as copyFrom } from 'pg-copy-streams';
import { Agent, request } from 'undici';
import type { Bench, BenchOptions } from './bench-setup.js';

/** Seconds of a bare client that fetches the same pages, four at a time, and only counts their bytes. */
export async function fetchOnly(
  { providerUrl }: Bench,
  companyIds: readonly string[],
  { records, size }: BenchOptions,
): Promise<number> {
  const agent = new Agent({ connections: 16 });
  const began = performance.now();
  await Promise.all(
    companyIds.map(async (id) => {
      const skips = Array.from({ length: Math.ceil((records - 1) / (size - 1)) }, (_, page) => page * (size - 1));
      const next = skips[Symbol.iterator]();
      const walk = async () => {
        for (const skip of next) {
          const { body } = await request(`${providerUrl}/api/companies/${id}/employees?skip=${skip}&$take=${size}`, {
            dispatcher: agent,
          });
          await body.text();
        }
      };
      await Promise.all([walk(), walk(), walk(), walk()]);
    }),
  );
  const seconds = (performance.now() - began) / 1_000;
  await agent.close();
  return seconds;
}

/** Seconds of one COPY of the same rows into a table of the same shape and key. */
export async function copyFloor({ pool, companyIds, providerUrl }: Bench, { records }: BenchOptions): Promise<number> {
  const lines: string[] = [];
  for (const id of companyIds) {
    for (let skip = 0; skip < records; skip += 5_000) {
      const { body } = await request(`${providerUrl}/api/companies/${id}/employees?skip=${skip}&$take=5000`);
      const { data } = (await body.json()) as { data: { uid: string }[] };
      for (const record of data) lines.push(`test\t${id}\t${record.uid}\t${JSON.stringify(record).replaceAll('\\', '\\\\')}\n`);
    }
  }
  const client = await pool.connect();
  try {
    await client.query('DROP TABLE IF EXISTS public.copy_floor');
    await client.query('CREATE TABLE public.copy_floor (LIKE mirror.employees INCLUDING ALL)');
    const began = performance.now();
    await pipeline(
      Readable.from(lines),
      client.query(copyFrom('COPY public.copy_floor (environment, company_id, id, data) FROM STDIN')),
    );
    const seconds = (performance.now() - began) / 1_000;
    await client.query('DROP TABLE public.copy_floor');
    return seconds;
  } finally {
    client.release();
  }
}

/** Seconds of a bare client that asks for one page after the other, as a walk without anything side by side would. */
export async function fetchOneByOne({ providerUrl, companyIds }: Bench, { records, size, style }: BenchOptions): Promise<number> {
  const agent = new Agent({ connections: 1 });
  const began = performance.now();
  for (let skip = 0; skip < records; skip += style === 'continuation' ? size : size - 1) {
    const path =
      style === 'continuation' ? `people?pageSize=${size}&continuationToken=${skip}` : `employees?skip=${skip}&$take=${size}`;
    const { body } = await request(`${providerUrl}/api/companies/${companyIds[0]}/${path}`, { dispatcher: agent });
    await body.text();
  }
  await agent.close();
  return (performance.now() - began) / 1_000;
}
