// muster.warehouse_settings: one row, by which the views of schema warehouse know settings that stand in the environment.
import type { Database } from '../connection/database.js';

/** Of processes with different settings the one that was started last is believed. */
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
