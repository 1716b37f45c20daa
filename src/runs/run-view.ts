import type { ErrorView } from '../core/errors.js';
import { isUuid, pageCursor, readCursor } from '../db/cursor.js';
import type { Database } from '../db/database.js';
import type { Run, Walk } from '../generated/prisma/client.js';

export type RunStatus = 'queued' | 'running' | 'succeeded' | 'failed' | 'cancelled';
export type RunTrigger = 'onboarding' | 'nightly' | 'manual' | 'reauthorization' | 'resync';

/** A walk as the admin API shows it (docs/admin-api.md). Counts are records, `pages` are requests that brought a page. */
export interface WalkView {
  readonly resource: string;
  readonly status: RunStatus;
  readonly verified: boolean;
  readonly proof?: string;
  readonly unverified_reason?: string;
  readonly pages: number;
  readonly passes: number;
  readonly received: number;
  readonly inserted: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly deleted: number;
  readonly rejected: number;
  readonly duplicates: number;
  readonly total_records: number | null;
  readonly resumed: boolean;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  readonly error?: ErrorView;
}

/** A run as the admin API shows it (docs/admin-api.md). Times are ISO 8601 in UTC. */
export interface RunView {
  readonly id: string;
  readonly environment: string;
  readonly company_id: string;
  readonly trigger: RunTrigger;
  readonly mode: 'resume' | 'full';
  readonly status: RunStatus;
  readonly attempts: number;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  /** When a queued run starts, where that is not now: it waits to retry. */
  readonly retry_at?: string;
  readonly error?: ErrorView;
  readonly walks: readonly WalkView[];
}

export interface RunFilter {
  readonly companyId?: string;
  readonly environment?: string;
  readonly status?: string;
  readonly limit: number;
  readonly cursor?: string;
}

const withWalks = { walks: { orderBy: { position: 'asc' } } } as const;

export async function findRun(db: Database, id: string): Promise<RunView | undefined> {
  if (!isUuid(id)) return undefined;
  const run = await db.prisma.run.findUnique({ where: { id }, include: withWalks });
  return run ? viewRun(run) : undefined;
}

/** Newest first. Throws `invalid_request` for a cursor that no answer gave. */
export async function listRuns(db: Database, filter: RunFilter): Promise<{ data: RunView[]; nextCursor?: string }> {
  const before = filter.cursor === undefined ? undefined : BigInt(readCursor(filter.cursor, /^\d{1,18}$/));
  const runs = await db.prisma.run.findMany({
    where: {
      ...(filter.companyId !== undefined && { companyId: filter.companyId }),
      ...(filter.environment !== undefined && { environment: filter.environment }),
      ...(filter.status !== undefined && { status: filter.status }),
      ...(before !== undefined && { seq: { lt: before } }),
    },
    orderBy: { seq: 'desc' },
    take: filter.limit + 1,
    include: withWalks,
  });
  const page = runs.slice(0, filter.limit);
  const last = page.at(-1);
  return { data: page.map(viewRun), ...(runs.length > filter.limit && last && { nextCursor: pageCursor(String(last.seq)) }) };
}

function viewRun(run: Run & { walks: readonly Walk[] }): RunView {
  return {
    id: run.id,
    environment: run.environment,
    company_id: run.companyId,
    trigger: run.trigger as RunTrigger,
    mode: run.mode as RunView['mode'],
    status: run.status as RunStatus,
    attempts: run.attempts,
    created_at: run.createdAt.toISOString(),
    started_at: iso(run.startedAt),
    finished_at: iso(run.finishedAt),
    ...(run.status === 'queued' && run.attempts > 0 && { retry_at: run.startAfter.toISOString() }),
    ...(run.error !== null && { error: run.error as unknown as ErrorView }),
    walks: run.walks.map(viewWalk),
  };
}

function viewWalk(walk: Walk): WalkView {
  return {
    resource: walk.resource,
    status: walk.status as RunStatus,
    verified: walk.verified,
    ...(walk.proof !== null && { proof: walk.proof }),
    ...(walk.unverifiedReason !== null && { unverified_reason: walk.unverifiedReason }),
    pages: walk.pages,
    passes: walk.pass,
    received: walk.received,
    inserted: walk.inserted,
    updated: walk.updated,
    unchanged: walk.unchanged,
    deleted: walk.deleted,
    rejected: walk.rejected,
    duplicates: walk.duplicates,
    total_records: walk.totalRecords,
    resumed: walk.resumed,
    started_at: iso(walk.startedAt),
    finished_at: iso(walk.finishedAt),
    ...(walk.error !== null && { error: walk.error as unknown as ErrorView }),
  };
}

function iso(date: Date | null): string | null {
  return date?.toISOString() ?? null;
}
