// muster.warehouse_settings: one row that gives the views of schema warehouse the settings they need from the environment and the catalogue.
import { nightlyHours, ownHours, type StaleAfterHours } from '../../core/stale-after.js';
import type { Database } from '../connection/database.js';

/**
 * Among processes with different settings, the one that started last wins. A process of an older version writes only the hours: lists with a schedule of
 * their own keep their minutes.
 */
export async function writeWarehouseSettings(
  db: Pick<Database, 'prisma'>,
  { staleAfterHours }: { staleAfterHours: StaleAfterHours },
): Promise<void> {
  const own = Object.entries(ownHours(staleAfterHours));
  const listMinutes = Object.fromEntries(own.map(([resource, hours]) => [resource, Math.round(hours * 60)]));
  const settings = { staleAfterHours: nightlyHours(staleAfterHours), listMinutes };
  await db.prisma.warehouseSettings.upsert({ where: { only: true }, create: settings, update: settings });
}
