import type { KeyRow } from '../db/tables/schema-columns.js';
import type { Sighting } from '../db/tables/schema-sightings.js';

/** A view of a resource whose columns are logged. */
export interface LogView {
  readonly resource: string;
  readonly view: string;
  /** The arrays around its keys, outermost first: the array in the record, and the array in an element of that. */
  readonly arrays: readonly (readonly string[])[];
}

/** A path as the key of a map. */
export function keyOf(path: readonly string[]): string {
  return JSON.stringify(path);
}

/** Whether a key is inside the objects of another key. */
export function isInside(path: readonly string[], around: readonly string[]): boolean {
  return path.length > around.length && around.every((key, n) => path[n] === key);
}

/** A key without counts and without a column. */
export function newKey(
  { resource, view }: LogView,
  seen: Pick<Sighting, 'path' | 'environment' | 'runId' | 'firstSeenAt' | 'lastSeenAt'>,
): KeyRow {
  const { path, environment, runId, firstSeenAt, lastSeenAt } = seen;
  const undecided = { name: null, type: null, position: null, textPosition: null, declared: null, converts: false };
  const untwinned = { twins: [], twinDue: null, twinAnswers: {} };
  const counts = { kinds: {}, values: 0, nulls: 0, misfits: 0 };
  return {
    resource,
    view,
    path: [...path],
    isKeptWhole: false,
    ...undecided,
    ...untwinned,
    ...counts,
    environment,
    firstRunId: runId,
    firstSeenAt,
    lastSeenAt,
  };
}

/** A key that no record has had. */
export function unseenKey(of: LogView, path: readonly string[], at: Date): KeyRow {
  return newKey(of, { path, environment: 'production', runId: null, firstSeenAt: at, lastSeenAt: at });
}

/** A sighting with its key. */
interface KeyedSighting {
  readonly key: string;
  readonly seen: Sighting;
}

/** Sorts by time, then by key. */
export function byFirstSight(a: KeyedSighting, b: KeyedSighting): number {
  return a.seen.firstSeenAt.getTime() - b.seen.firstSeenAt.getTime() || (a.key < b.key ? -1 : 1);
}

export function earlier(a: Date, b: Date): Date {
  return a.getTime() <= b.getTime() ? a : b;
}
