import type { RunRow } from '../db/tables/runs.js';
import type { WalkRow } from '../db/tables/walks.js';
import type { RunModel, WalkModel } from './models.js';

/** A run as the API shows it. */
export function presentRun(run: RunRow): RunModel {
  return {
    id: run.id,
    environment: run.environment,
    company_id: run.companyId,
    trigger: run.trigger,
    mode: run.mode,
    status: run.status,
    attempts: run.attempts,
    created_at: run.createdAt.toISOString(),
    started_at: iso(run.startedAt),
    finished_at: iso(run.finishedAt),
    ...(run.status === 'queued' && run.attempts > 0 && { retry_at: run.startAfter.toISOString() }),
    ...(run.error !== null && { error: run.error }),
    walks: run.walks.map(presentWalk),
  };
}

function presentWalk(walk: WalkRow): WalkModel {
  return {
    resource: walk.resource,
    status: walk.status,
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
    ...(walk.error !== null && { error: walk.error }),
  };
}

function iso(date: Date | null): string | null {
  return date?.toISOString() ?? null;
}
