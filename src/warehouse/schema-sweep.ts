import { type Catalogue, flattenLevels } from '../catalogue/endpoint.js';
import type { Clock } from '../core/clock.js';
import type { Environment } from '../core/company.js';
import { limitDutyCycle } from '../core/duty-cycle.js';
import type { Database } from '../db/connection/database.js';
import { inTransaction, type Transaction } from '../db/connection/transaction.js';
import * as log from '../db/tables/schema-columns.js';
import * as feed from '../db/tables/schema-sightings.js';
import { recordSchemaChange } from '../notifications/events.js';
import type { Logger } from '../observability/logger.js';
import { declareTypes } from './declared-types.js';
import { openLogs, writeLog } from './log-storage.js';
import { rebuildLog } from './rebuild-log.js';
import { addDueTwin } from './typed-twins.js';
import { extendViews } from './typed-views.js';

interface SchemaDependencies {
  readonly db: Database;
  readonly catalogue: Catalogue;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly logger: Logger;
}

/** The longest that one call counts, apart from the piece of the feed that it has begun. */
const LOOK_MS = 1_000;
/** A first mirror has better use for the machine, and its first records have shown most keys. */
const SHARE = 1 / 12;

/**
 * The first call takes over the declared types of the catalogue. Each call counts the keys in new records of the feed, gives columns to keys with enough values and
 * twins to columns whose values have another type, notifies of new columns, and extends the views. A sweep that is killed anywhere loses nothing: counts
 * are written together with the place in the feed, questions to the mirror are in the log, and a view is compared with the log each time.
 */
export function schemaSweep({ db, catalogue, clock, logger }: SchemaDependencies): () => Promise<void> {
  let isDeclared = false;
  const learnNews = async () => {
    const startedAt = clock.monotonic();
    isDeclared ||= await declareTypes(db, catalogue);
    if (!(await log.hasNews(db, flattenLevels(catalogue)))) return;
    const resource = await log.findAskedRebuild(db.prisma);
    if (resource !== undefined) await rebuildLog(db, catalogue, resource);
    while ((await learnPiece(db, catalogue)) && clock.monotonic() - startedAt < LOOK_MS);
    while (clock.monotonic() - startedAt < LOOK_MS && (await addDueTwin(db)));
  };
  const learnInTurns = limitDutyCycle(clock, learnNews, SHARE);
  return async () => {
    await learnInTurns();
    await extendViews(db, logger);
  };
}

/** Counts the next piece of the feed. Returns whether there was one; false while another process has the log. */
export function learnPiece(db: Database, catalogue: Catalogue): Promise<boolean> {
  return inTransaction(db, async (tx) => {
    const after = await log.lockSchemaLog(tx);
    if (after === undefined) return false;
    // Read before the feed: a run that has ended by now has nothing left to count.
    const levels = flattenLevels(catalogue);
    const due = await log.findDue(tx, { seq: after, levels });
    const span = await feed.nextSpan(tx, { after });
    if (!span) {
      if (due.length > 0) await learn(tx, catalogue, [], due);
      return false;
    }
    const mismatches = await learn(tx, catalogue, await feed.countMembers(tx, span, levels), due);
    if (mismatches.length > 0) await feed.recordTypeMismatchesOf(tx, span, mismatches);
    await log.moveSchemaCursor(tx, { seq: span.through });
    return true;
  });
}

/** Returns the counted type mismatches. */
async function learn(
  tx: Transaction,
  catalogue: Catalogue,
  sightings: readonly feed.Sighting[],
  due: readonly log.Due[],
): Promise<feed.TypeMismatches[]> {
  const resources = [...new Set([...sightings, ...due].map(({ resource }) => resource))];
  const logs = await openLogs(tx, catalogue, resources, sightings);
  const fresh = resources.filter((_resource, n) => logs[n]!.isUnseen);
  await log.addResources(
    tx,
    fresh.map((resource) => ({ resource, firstRunId: sightings.find((seen) => seen.resource === resource)?.runId ?? null })),
  );
  const settled = await log.settledSince(tx, resources);
  const mismatches: feed.TypeMismatches[] = [];
  for (const [n, resource] of resources.entries()) {
    const columns = logs[n]!;
    const seen = sightings.filter((sighting) => sighting.resource === resource);
    columns.count(seen);
    columns.decide(due.filter((key) => key.resource === resource));
    await writeLog(tx, resource, columns);
    mismatches.push(...columns.mismatches);
    const since = settled.get(resource);
    const added = columns.added.filter(({ firstSeenAt }) => since && firstSeenAt > since);
    await recordSchemaChange(tx, {
      environment: (added[0] ?? seen[0])?.environment as Environment,
      resource,
      position: columns.lastPosition,
      added: added.length,
      mismatching: columns.mismatching.length,
    });
  }
  return mismatches;
}
