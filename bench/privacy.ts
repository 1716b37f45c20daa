import { type BenchOptions, openBench } from './bench-setup.js';
import type { Measures } from './measures.js';

/** A first mirror of four companies with one rule beside one without, in turn, each on a PostgreSQL of its own. */
export async function measurePrivacy(
  measures: Measures,
  { rounds, records }: { readonly rounds: number; readonly records: number },
): Promise<void> {
  const options: BenchOptions = { companies: 4, records, size: 500, style: 'skip-take' };
  const total = options.companies * records;
  const bare = await openBench(options);
  const hashed = await openBench({ ...options, privacy: { email: 'hash' } }).catch(async (error: unknown) => {
    await bare.stop();
    throw error;
  });
  try {
    for (let round = -1; round < rounds; round += 1) {
      const seconds: number[] = [];
      for (const bench of round % 2 === 0 ? [bare, hashed] : [hashed, bare]) {
        await bench.forget();
        seconds.push(await bench.sync(bench.companyIds));
      }
      const [without, withRule] = (round % 2 === 0 ? seconds : seconds.toReversed()) as [number, number];
      if (round < 0) continue; // what is compiled and cached only once
      measures.note('first mirror with one rule "hash", rows/s', total / withRule);
      measures.note('first mirror with one rule / without', without / withRule);
    }
  } finally {
    await hashed.stop();
    await bare.stop();
  }
}
