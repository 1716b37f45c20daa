import { z } from 'zod';
import { systemClock } from '../../core/clock.js';
import { HOLD_CAUSES, HOLD_STATUSES } from '../../db/tables/holds.js';
import type { ShownRun } from '../../db/tables/run-list.js';
import type { ShownWalk } from '../../db/tables/walks.js';
import { CompanyName } from '../plumbing/company-names.js';
import { Count, Failure, presentTime, Time } from '../plumbing/models.js';

const Verify = z
  .object({
    missing: Count.describe('Records that the service has and the last verified walk received, but that have no living row.'),
    extra: Count.describe('Living rows of records that the last verified walk did not receive.'),
    different: Count.describe('Rows whose text differs from the text that the walk received.'),
    changed_since: Count.describe('Records that changed upstream after the walk: no fault of the mirror.'),
    held: Count.describe('Rows that a hold keeps from being deleted.'),
    compared: Count.describe('Records received.'),
    as_of: Time.nullable().describe(
      'Time of the proof that the mirror is compared with. Null if the list was never verified: then nothing is a fault.',
    ),
    sample: z
      .array(
        z.object({
          id: z.string(),
          kind: z.enum(['missing', 'extra', 'different']),
          members: z.array(z.string()).optional().describe('Names of the members that differ.'),
        }),
      )
      .describe('At most ten of each kind.'),
    contradiction: z.string().optional().describe('Why the list may go on after the place where a walk took it to end.'),
  })
  .meta({ id: 'Verify', description: 'The findings of a verification read of the list. It leaves the mirror as it is.' });
export type VerifyModel = z.output<typeof Verify>;

export const RunStatusName = z.enum(['queued', 'running', 'succeeded', 'failed', 'cancelled']);

const Walk = z
  .object({
    resource: z.string(),
    status: RunStatusName,
    verified: z.boolean().describe('Whether the walk proved the mirror of this list complete.'),
    proof: z
      .string()
      .optional()
      .describe('join, two-pass or token-chain: docs/verification.md explains the assumptions of each.'),
    unverified_reason: z.string().optional(),
    unverified_detail: z.string().optional().describe('What the walk saw, and the line for the catalogue.'),
    service_says: z
      .string()
      .optional()
      .describe("The service's own sentence if it refused the list: at most 300 characters from outside, as text."),
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
    verify: Verify.optional().describe('Set in a run of kind `verify` that has read the list.'),
    hold: z
      .object({ id: z.string(), cause: z.enum(HOLD_CAUSES), count: Count, status: z.enum(HOLD_STATUSES) })
      .optional()
      .describe('The hold of the rows that this walk would have deleted. GET /api/holds has it.'),
    error: Failure.optional(),
  })
  .meta({ id: 'Walk', description: 'One list of the company read once.' });
export type WalkModel = z.output<typeof Walk>;

const Progress = z
  .object({
    resource: z.string().optional().describe('The list that is read now.'),
    lists_done: Count.describe('Lists that have been read.'),
    lists: Count,
    pages: Count,
    received: Count.describe('Records of all lists.'),
    expected: Count.nullable().describe(
      'Records of all lists, by the totals that the service gave or the lists held at their last proof; null if unknown for one of them.',
    ),
    percent: z.int().min(0).max(99).nullable().describe('What was received of what is expected.'),
  })
  .meta({ id: 'Progress', description: 'How far an unfinished run is.' });
export type ProgressModel = z.output<typeof Progress>;

export const Run = z
  .object({
    id: z.string(),
    environment: z.string(),
    company_id: z.string(),
    company_name: CompanyName,
    trigger: z.string(),
    kind: z.enum(['sync', 'verify']).describe('`verify`: a run that compares the service with the mirror and changes nothing.'),
    mode: z.enum(['resume', 'full']),
    status: RunStatusName,
    attempts: Count,
    company_removed: z.literal(true).optional().describe('The company is not onboarded any more.'),
    created_at: Time,
    started_at: Time.nullable(),
    finished_at: Time.nullable(),
    estimated_seconds_left: Count.nullable().optional().describe('Estimated from its pace so far; null if unknown.'),
    waits_for: z
      .enum(['quiet_hours'])
      .optional()
      .describe(
        'Why the queued run does not start before `waits_until`: in quiet hours Muster asks nothing of the service by itself.',
      ),
    waits_until: Time.optional().describe('When a run that waits for the end of quiet hours starts.'),
    retry_at: Time.optional().describe('When a run that waits to retry starts.'),
    error: Failure.optional().describe('Of a run that waits to retry, the error of its last attempt.'),
    progress: Progress.optional().describe('Set until the run has ended.'),
    walks: z.array(Walk).readonly(),
  })
  .meta({
    id: 'Run',
    description: 'One sync of one company, with a walk for each resource; or one verification read of its lists.',
  });
export type RunModel = z.output<typeof Run>;

export function presentRun(run: ShownRun): RunModel {
  const startsAt = run.startAfter.toISOString();
  const isQuiet =
    run.status === 'queued' && run.quietUntil?.toISOString() === startsAt && run.startAfter.getTime() > systemClock.now();
  return {
    id: run.id,
    environment: run.environment,
    company_id: run.companyId,
    trigger: run.trigger,
    kind: run.kind,
    mode: run.mode,
    status: run.status,
    attempts: run.attempts,
    ...(run.isCompanyRemoved && { company_removed: true as const }),
    created_at: run.createdAt.toISOString(),
    started_at: presentTime(run.startedAt),
    finished_at: presentTime(run.finishedAt),
    ...(isQuiet && { waits_for: 'quiet_hours' as const, waits_until: startsAt }),
    // A run that quiet hours have stopped has no error: its last attempt did not fail.
    ...(run.status === 'queued' && run.attempts > 0 && !(isQuiet && run.error === null) && { retry_at: startsAt }),
    ...(run.error !== null && { error: run.error }),
    ...((run.status === 'queued' || run.status === 'running') && run.walks.length > 0 && { progress: progressOf(run.walks) }),
    walks: run.walks.map(presentWalk),
  };
}

/** Lists that failed in this attempt are read again in the next one, so they count as unread. */
function progressOf(walks: readonly ShownWalk[]): ProgressModel {
  const sum = (count: (walk: ShownWalk) => number) => walks.reduce((total, walk) => total + count(walk), 0);
  const received = sum((walk) => walk.received);
  const isRead = ({ status }: ShownWalk) => status === 'succeeded';
  const wholeOf = (walk: ShownWalk) => (isRead(walk) ? walk.received : (walk.totalRecords ?? walk.recordsAtProof ?? null));
  // A list may have grown since its last proof.
  const expected = walks.every((walk) => wholeOf(walk) !== null) ? sum((walk) => Math.max(wholeOf(walk)!, walk.received)) : null;
  const current = walks.find(({ status }) => status === 'running');
  return {
    ...(current && { resource: current.resource }),
    lists_done: walks.filter(isRead).length,
    lists: walks.length,
    pages: sum(({ pages }) => pages),
    received,
    expected,
    percent: expected ? Math.min(99, Math.floor((100 * received) / expected)) : null,
  };
}

function presentWalk(walk: ShownWalk): WalkModel {
  return {
    resource: walk.resource,
    status: walk.status,
    verified: walk.verified,
    ...(walk.proof !== null && { proof: walk.proof }),
    ...(walk.unverifiedReason !== null && { unverified_reason: walk.unverifiedReason }),
    ...(walk.unverifiedDetail !== null && { unverified_detail: walk.unverifiedDetail }),
    ...(walk.serviceSays !== null && { service_says: walk.serviceSays }),
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
    ...(walk.verify !== null && { verify: walk.verify as VerifyModel }),
    ...(walk.hold && { hold: walk.hold }),
    ...(walk.error !== null && { error: walk.error }),
  };
}
