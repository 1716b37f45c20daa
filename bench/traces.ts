import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Bench, type BenchOptions, openBench } from './bench-setup.js';
import { Measures } from './measures.js';

/** What each pair of processes does before it is measured, while its code is compiled, and then the times that it is measured. */
const [WARM_UP, TIMES] = [1, 3];
/** Longer than ended spans wait to be sent. */
const SENT_MS = 1_300;

/**
 * What traces cost: the processor time (user and system) of a worker that sends them beside one that does not, over the same work. Each round has processes
 * of its own, in either order: two that do the same differ by a tenth for as long as they live, more than the rounds of one. On Linux, since it
 * reads /proc; in steps of 10 ms, so the work has to take seconds.
 */
export async function measureTraces(
  measures: Measures,
  { rounds, records }: { readonly rounds: number; readonly records: number },
): Promise<void> {
  const collector = await startSink();
  const noTraces = {};
  const traces = { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(collector.address() as AddressInfo).port}` };
  try {
    for (let round = 0; round < rounds; round += 1) {
      const order = round % 2 === 0 ? [noTraces, traces] : [traces, noTraces];
      for (const measureWork of [measureLarge, measureSmall]) {
        const used = new Map<object, Measures>();
        for (const env of order) used.set(env, await measureWork({ ...LISTS, records, env }));
        const [without, withTraces] = [used.get(noTraces)!, used.get(traces)!];
        for (const name of without.values.keys()) {
          measures.note(`${name}: worker's CPU seconds without traces`, without.median(name));
          measures.note(`${name}: worker's CPU with traces / without`, withTraces.median(name) / without.median(name));
        }
      }
    }
  } finally {
    collector.close().closeAllConnections();
  }
}

const LISTS = { size: 500, style: 'skip-take' } as const;

/** Four large lists: the first mirror, and two nights in which nothing changed. */
function measureLarge(options: Omit<BenchOptions, 'companies'>): Promise<Measures> {
  return measureWith({ ...options, companies: 4 }, async (bench, used) => {
    await bench.forget();
    used.note('first mirror', await cpuOf(bench, () => bench.sync(bench.companyIds)));
    await bench.settle();
    const twice = () => bench.sync(bench.companyIds).then(() => bench.sync(bench.companyIds));
    used.note('nothing changed, twice', await cpuOf(bench, twice));
  });
}

/** A night of many companies, of which each is one page. */
function measureSmall(options: Omit<BenchOptions, 'companies'>): Promise<Measures> {
  return measureWith({ ...options, companies: 1_000, records: 100 }, async (bench, used) => {
    await bench.settle();
    const night = async () => bench.untilEnded(bench.companyIds, await bench.makeDue());
    used.note('a night of 1,000 companies of 100 records', await cpuOf(bench, night));
  });
}

async function measureWith(options: BenchOptions, work: (bench: Bench, used: Measures) => Promise<void>): Promise<Measures> {
  const bench = await openBench(options);
  try {
    const used = new Measures();
    for (let n = 0; n < WARM_UP + TIMES; n += 1) await work(bench, n < WARM_UP ? new Measures() : used);
    return used;
  } finally {
    await bench.stop();
  }
}

/** A collector that takes everything and keeps nothing. */
async function startSink(): Promise<Server> {
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

async function cpuOf({ workerPid }: Bench, work: () => Promise<unknown>): Promise<number> {
  const before = cpuSeconds(workerPid);
  await work();
  await sleep(SENT_MS);
  return cpuSeconds(workerPid) - before;
}

/** User and system time of a process. Its name, in parentheses, is the only field that may have spaces. */
function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}
