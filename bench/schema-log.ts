import { openBench } from './bench-setup.js';
import type { Measures, Scale } from './measures.js';

/**
 * What the schema log costs a first mirror: the same one while its sweep counts what comes, and while it finds its log taken, as that of any worker beside
 * another one. Which of them comes first changes from round to round. A barrier is a row of the statement that ends a walk, and in both.
 */
export async function measureSchemaLog(measures: Measures, { rounds, records }: Scale): Promise<void> {
  const bench = await openBench({ companies: 4, records, size: 500, style: 'skip-take' });
  try {
    const firstMirror = async () => {
      await bench.forget();
      return bench.sync(bench.companyIds);
    };
    const without = async () => {
      const taken = await bench.pool.connect();
      try {
        await taken.query('BEGIN');
        // Waits for the sweep that is under way.
        await taken.query('SELECT FROM muster.schema_log_cursor FOR UPDATE');
        return await firstMirror();
      } finally {
        await taken.query('ROLLBACK');
        taken.release();
      }
    };
    await firstMirror();
    for (let round = 0; round < rounds; round += 1) {
      const isFirst = round % 2 === 0;
      const before = isFirst ? await firstMirror() : undefined;
      const bare = await without();
      measures.note('first mirror with the schema log / without', (before ?? (await firstMirror())) / bare);
    }
  } finally {
    await bench.stop();
  }
}
