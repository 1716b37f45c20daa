import type { Registry } from 'prom-client';
import type { Database } from '../db/connection/database.js';
import { readCounts } from '../db/tables/work-counts.js';
import { sumCounts, WorkMetrics } from './work-metrics.js';

/**
 * Adds what all processes have counted of their work (work-counts.ts) to a registry. All of it is read by one statement a scrape; if that fails, the
 * metrics are there without values. `inTurn` runs a reading after those that have begun.
 */
export function addStoredMetrics(
  registry: Registry,
  db: Pick<Database, 'prisma'>,
  inTurn: <T>(read: () => Promise<T>) => Promise<T>,
): void {
  let reading: Promise<Registry | undefined> | undefined;
  function readOnce(): Promise<Registry | undefined> {
    reading ??= inTurn(async () => sumCounts(await readCounts(db)))
      .catch(() => undefined)
      .finally(() => {
        reading = undefined;
      });
    return reading;
  }
  const known = new WorkMetrics([]).registry;
  for (const { name } of known.getMetricsAsArray()) {
    const metric = known.getSingleMetric(name)!;
    const get = async () => {
      const summed = (await readOnce())?.getSingleMetric(name);
      return { ...(await metric.get()), values: (await summed?.get())?.values ?? [] };
    };
    // Their names, help and labels are those of the metric; only the values are others.
    registry.registerMetric(Object.assign(Object.create(metric), { get, getForPromString: get }));
  }
}
