import { z } from 'zod';
import type { RunRow } from '../db/tables/runs.js';
import type { WalkRow } from '../db/tables/walks.js';
import { Count, Failure, presentTime, Time } from './models.js';

export const RunStatusName = z.enum(['queued', 'running', 'succeeded', 'failed', 'cancelled']);

const Walk = z
  .object({
    resource: z.string(),
    status: RunStatusName,
    verified: z.boolean().meta({ description: 'Whether the mirror of this list was proved complete.' }),
    proof: z
      .string()
      .optional()
      .meta({ description: 'join, two-pass or token-chain: docs/verification.md says what each assumes.' }),
    unverified_reason: z.string().optional(),
    pages: Count,
    passes: Count,
    received: Count,
    inserted: Count,
    updated: Count,
    unchanged: Count,
    deleted: Count,
    rejected: Count,
    duplicates: Count,
    total_records: Count.nullable(),
    resumed: z.boolean(),
    started_at: Time.nullable(),
    finished_at: Time.nullable(),
    error: Failure.optional(),
  })
  .meta({ id: 'Walk', description: 'One list of the company read once.' });
export type WalkModel = z.output<typeof Walk>;

export const Run = z
  .object({
    id: z.string(),
    environment: z.string(),
    company_id: z.string(),
    trigger: z.string(),
    mode: z.enum(['resume', 'full']),
    status: RunStatusName,
    attempts: Count,
    created_at: Time,
    started_at: Time.nullable(),
    finished_at: Time.nullable(),
    retry_at: Time.optional().meta({ description: 'When a run that waits to retry starts.' }),
    error: Failure.optional(),
    walks: z.array(Walk).readonly(),
  })
  .meta({ id: 'Run', description: 'One sync of one company: a walk a resource.' });
export type RunModel = z.output<typeof Run>;

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
    started_at: presentTime(run.startedAt),
    finished_at: presentTime(run.finishedAt),
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
    started_at: presentTime(walk.startedAt),
    finished_at: presentTime(walk.finishedAt),
    ...(walk.error !== null && { error: walk.error }),
  };
}
