import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Bench, type BenchOptions, openBench } from './bench-setup.js';
import type { Measures } from './measures.js';

/**
 * What traces cost: the processor time (user and system) of a worker that sends them beside one that does not, over the same work, in turn and in both orders. A first mirror, and a
 * night in which nothing changed. On Linux, since it reads /proc; in steps of 10 ms, so the work has to take seconds.
 */
export async function measureTraces(
  measures: Measures,
  { rounds, records }: { readonly rounds: number; readonly records: number },
): Promise<void> {
  const collector = await startSink();
  const options: BenchOptions = { companies: 4, records, size: 500, style: 'skip-take' };
  const bare = await openBench(options);
  const url = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
  const traced = await openBench({ ...options, env: { OTEL_EXPORTER_OTLP_ENDPOINT: url } }).catch(async (error: unknown) => {
    await bare.stop();
    throw error;
  });
  try {
    for (let round = -1; round < rounds; round += 1) {
      const used = new Map<Bench, { readonly first: number; readonly quiet: number }>();
      for (const bench of round % 2 === 0 ? [bare, traced] : [traced, bare]) {
        await bench.forget();
        const first = await cpuOf(bench, () => bench.sync(bench.companyIds));
        await bench.settle();
        used.set(bench, { first, quiet: await cpuOf(bench, () => bench.sync(bench.companyIds)) });
      }
      if (round < 0) continue; // what is compiled and cached only once
      const [without, withTraces] = [used.get(bare)!, used.get(traced)!];
      measures.note("first mirror: worker's CPU seconds without traces", without.first);
      measures.note("first mirror: worker's CPU with traces / without", withTraces.first / without.first);
      measures.note("nothing changed: worker's CPU seconds without traces", without.quiet);
      measures.note("nothing changed: worker's CPU with traces / without", withTraces.quiet / without.quiet);
    }
  } finally {
    await traced.stop();
    await bare.stop();
    collector.close().closeAllConnections();
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
  return cpuSeconds(workerPid) - before;
}

/** User and system time of a process. Its name, in parentheses, is the only field that may have spaces. */
function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}
