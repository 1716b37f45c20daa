// muster.warehouse_settings: one row that gives the views of schema warehouse the settings they need from the environment.
import type { Database } from '../connection/database.js';

/** Among processes with different settings, the one that started last wins. */
export async function writeWarehouseSettings(
  db: Pick<Database, 'prisma'>,
  { staleAfterHours }: { staleAfterHours: number },
): Promise<void> {
  await db.prisma.warehouseSettings.upsert({
    where: { only: true },
    create: { staleAfterHours },
    update: { staleAfterHours },
  });
}
