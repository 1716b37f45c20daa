import { type Bench, type BenchOptions, openBench } from './bench-setup.js';
import { copyFloor, fetchOneByOne, fetchOnly } from './floors.js';

/** Every value that was measured, by what it is; medians are quoted. */
export class Measures {
  readonly values = new Map<string, number[]>();
  /** Of PostgreSQL. */
  serverVersion = 'of no known version';

  note(name: string, value: number): void {
    this.values.set(name, [...(this.values.get(name) ?? []), value]);
  }

  median(name: string): number {
    const sorted = (this.values.get(name) ?? []).toSorted((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  }
}

export interface Scale {
  readonly rounds: number;
  /** Records of each of the four companies. */
  readonly records: number;
  /** Records of the company whose memory is measured, and a tenth of it. */
  readonly giant: number;
  /** The most companies that are synced in one go. */
  readonly manyCompanies: number;
  /** Companies whose tokens come due at once. */
  readonly dueCompanies: number;
}

/** Four companies side by side: floors and syncs in turn within each round, so that a noisy machine is noisy for all of them. */
export async function measureThroughput(measures: Measures, { rounds, records }: Scale, size: number): Promise<void> {
  const options: BenchOptions = { companies: 4, records, size, style: 'skip-take' };
  await withBench(options, async (bench) => {
    measures.serverVersion = (await bench.pool.query<{ server_version: string }>('SHOW server_version')).rows[0]!.server_version;
    await throughputRound(bench, options, new Measures(), '');
    for (let n = 0; n < rounds; n++) await throughputRound(bench, options, measures, ` (pages of ${size})`);
  });
}

async function throughputRound(bench: Bench, options: BenchOptions, measures: Measures, suffix: string): Promise<void> {
  const all = bench.companyIds;
  const total = all.length * options.records;
  const note = (name: string, value: number) => measures.note(name + suffix, value);
  await bench.forget();
  const copied = await copyFloor(bench, options);
  note('COPY, rows/s', total / copied);
  const first = await bench.sync(all);
  note('first mirror, rows/s', total / first);
  note('first mirror / COPY', copied / first);
  // Garbage, buffers to write back and tables to vacuum are still the first mirror's; the nights that follow find none of them.
  note('nothing changed, right behind the first mirror, rows/s', total / (await bench.sync(all)));
  await bench.settle();
  const fetched = await fetchOnly(bench, all, options);
  note('fetch only, rows/s', total / fetched);
  const wal = await bench.walBytes();
  const unchanged = await bench.sync(all);
  note('nothing changed, rows/s', total / unchanged);
  note('nothing changed / fetch only', fetched / unchanged);
  note('nothing changed, WAL bytes a record', Number((await bench.walBytes()) - wal) / total);
  await bench.control('etags=on');
  // The first one learns the ETags.
  await bench.sync(all);
  await bench.settle();
  const notSent = await bench.sync(all);
  note('nothing changed, with ETags, rows/s', total / notSent);
  note('nothing changed, with ETags / fetch only', fetched / notSent);
  const fetchedTogether = await change(bench, options, 'change=0.01&together');
  const changedTogether = await bench.sync(all);
  note('1 % changed in one place, with ETags, rows/s', total / changedTogether);
  note('1 % changed in one place, with ETags / fetch only', fetchedTogether / changedTogether);
  await bench.control('etags=off');
  const fetchedAgain = await change(bench, options, 'change=0.01');
  const walBefore = await bench.walBytes();
  const changed = await bench.sync(all);
  note('fetch only, right before 1 % changed, rows/s', total / fetchedAgain);
  note('1 % changed, rows/s', total / changed);
  note('1 % changed / fetch only', fetchedAgain / changed);
  note('1 % changed, WAL bytes a record', Number((await bench.walBytes()) - walBefore) / total);
  await bench.forget();
  note('first mirror of one company / COPY', copied / 4 / (await bench.sync(all.slice(0, 1))));
}

/** Has the provider change records and render its pages anew, and the night settled, before anything is measured. Seconds of fetching them. */
async function change(bench: Bench, options: BenchOptions, control: string): Promise<number> {
  await bench.control(control);
  await bench.settle();
  await fetchOnly(bench, bench.companyIds, options);
  return fetchOnly(bench, bench.companyIds, options);
}

/** The same companies shared by two workers, one for each core of the machine that the reaches are meant for. */
export async function measureTwoWorkers(measures: Measures, { rounds, records }: Scale): Promise<void> {
  const options: BenchOptions = { companies: 4, records, size: 500, style: 'skip-take', workers: 2 };
  await withBench(options, async (bench) => {
    const all = bench.companyIds;
    await bench.forget();
    await bench.sync(all);
    await bench.sync(all);
    for (let n = 0; n < rounds; n++) {
      await bench.settle();
      const fetched = await fetchOnly(bench, all, options);
      measures.note('two workers: nothing changed / fetch only', fetched / (await bench.sync(all)));
      const fetchedAgain = await change(bench, options, 'change=0.01');
      measures.note('two workers: 1 % changed / fetch only', fetchedAgain / (await bench.sync(all)));
    }
  });
}

/** One company behind 50 ms a request. */
export async function measureLatency(measures: Measures, { rounds, records }: Scale): Promise<void> {
  const options: BenchOptions = { companies: 1, records: records / 2, size: 500, style: 'skip-take' };
  await withBench(options, async (bench) => {
    for (let n = 0; n < rounds; n++) {
      await bench.control('latency=0');
      await bench.forget();
      const near = await bench.sync(bench.companyIds);
      await bench.control('latency=50');
      await bench.forget();
      measures.note('50 ms: first mirror / the same without latency', (await bench.sync(bench.companyIds)) / near);
      const unchanged = await bench.sync(bench.companyIds);
      measures.note('50 ms: page after page / nothing changed', (await fetchOneByOne(bench, options)) / unchanged);
    }
  });
  const tokens: BenchOptions = { ...options, style: 'continuation' };
  await withBench(tokens, async (bench) => {
    for (let n = 0; n < rounds; n++) {
      await bench.control('latency=50');
      await bench.forget();
      const first = await bench.sync(bench.companyIds);
      measures.note('50 ms, token list: first mirror / page after page', first / (await fetchOneByOne(bench, tokens)));
    }
  });
}

/** Peak memory of a worker that walks one giant list, and the same for a tenth of it. */
export async function measureMemory(measures: Measures, { rounds, giant }: Scale): Promise<void> {
  for (let n = 0; n < rounds; n++) {
    const tenth = await peakMemory(giant / 10);
    const whole = await peakMemory(giant);
    measures.note(`worker's peak memory for ${giant} records, MB`, whole / 1e6);
    measures.note("worker's peak memory / the same for a tenth", whole / tenth);
  }
}

/** Of a worker that has just started, in bytes. */
async function peakMemory(records: number): Promise<number> {
  let peak = 0;
  await withBench({ companies: 1, records, size: 1_000, style: 'skip-take' }, async (bench) => {
    await bench.forget();
    await bench.sync(bench.companyIds);
    peak = await bench.workerPeak();
  });
  return peak;
}

/** From POST …/sync to the first request at the provider. */
export async function measureDispatch(measures: Measures): Promise<void> {
  await withBench({ companies: 1, records: 10, size: 500, style: 'skip-take' }, async (bench) => {
    for (let n = 0; n < 30; n++)
      measures.note('POST …/sync to the first request, ms', await bench.dispatch(bench.companyIds[0]!));
  });
}

/** One company of growing size, then a growing number of small ones: what a record and what a company cost. */
export async function measureScale(measures: Measures, { giant, manyCompanies }: Scale): Promise<void> {
  for (const records of [giant / 100, giant / 10, giant]) {
    const size = `${records.toLocaleString('en-US')} records`;
    await withBench({ companies: 1, records, size: 1_000, style: 'skip-take' }, async (bench) => {
      await bench.forget();
      measures.note(`${size}: first mirror, µs a record`, ((await bench.sync(bench.companyIds)) * 1e6) / records);
      // The provider has rendered its pages, and the next walk has one to go by.
      measures.note(`${size}: nothing changed, µs a record`, ((await bench.sync(bench.companyIds)) * 1e6) / records);
    });
  }
  for (const companies of [manyCompanies / 1_000, manyCompanies / 10, manyCompanies]) {
    const number = `${companies.toLocaleString('en-US')} companies`;
    await withBench({ companies, records: 20, size: 500, style: 'skip-take' }, async (bench) => {
      measures.note(`${number}: nothing changed, ms a company`, ((await bench.syncAll()) * 1e3) / companies);
    });
  }
}

async function withBench(options: BenchOptions, work: (bench: Bench) => Promise<void>): Promise<void> {
  const bench = await openBench(options);
  await work(bench).finally(() => bench.stop());
}
