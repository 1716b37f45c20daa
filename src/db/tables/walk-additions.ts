// muster.walks: lists that are added to a run that waits for the end of quiet hours. Lock order: connections, runs, walks. The caller has locked the connection.
import type { CompanyKey } from '../../core/company.js';
import type { Walk } from '../../generated/prisma/client.js';
import type { Transaction } from '../connection/transaction.js';
import { type RunMode, STATUS_OF_ONE, type SyncTrigger } from './runs.js';
import { insertWalks } from './walks.js';

/** Locks the runs among these that wait for the end of quiet hours, and returns them: no worker claims them before it. */
export function lockQuietRuns(
  tx: Transaction,
  { ids }: { readonly ids: readonly string[] },
): Promise<(CompanyKey & Pick<Walk, 'id'>)[]> {
  return tx.$queryRaw`
    SELECT id, environment, company_id AS "companyId" FROM muster.runs
    WHERE id = ANY(${ids}::uuid[]) AND ${STATUS_OF_ONE} = 'queued' AND quiet_until = start_after AND start_after > now() FOR UPDATE`;
}

/** The place of a list in its run; `id` is that of its walk, where there is one already. */
export type PlacedWalk = CompanyKey & Pick<Walk, 'runId' | 'resource' | 'position'> & { readonly id?: string | undefined };

/**
 * Adds walks to runs, and moves those that they have. The walks are all of these runs. A run by the schedules of lists becomes the one that is
 * requested: it does more now, and is the last sync of its company.
 */
export async function placeWalks(
  tx: Transaction,
  walks: readonly PlacedWalk[],
  { trigger, mode }: { readonly trigger: SyncTrigger; readonly mode: RunMode },
): Promise<void> {
  await tx.$executeRaw`
    UPDATE muster.runs SET trigger = ${trigger}, mode = ${mode}
    WHERE id = ANY(${[...new Set(walks.map(({ runId }) => runId))]}::uuid[]) AND runs.trigger = 'scheduled'`;
  const kept = walks.flatMap(({ id, position }) => (id === undefined ? [] : [{ id, position }]));
  const ids = kept.map(({ id }) => id);
  // A place is unique at each moment, so the former ones are left first.
  await tx.$executeRaw`UPDATE muster.walks SET position = -1 - position WHERE id = ANY(${ids}::uuid[])`;
  await tx.$executeRaw`
    UPDATE muster.walks SET position = asked.position
    FROM unnest(${ids}::uuid[], ${kept.map(({ position }) => position)}::int[]) AS asked(id, position) WHERE walks.id = asked.id`;
  await insertWalks(tx, { walks: walks.filter(({ id }) => id === undefined), kind: 'sync' });
}
