import { z } from 'zod';
import { ENVIRONMENTS, parseCompanyId } from '../core/company.js';
import { EVENT_TYPES, NOTIFICATION_STATUSES } from '../db/tables/notifications.js';
import { limit, queryOf } from './query.js';

// What the admin API takes and gives. Inputs are checked against these; answers are described by them.

const EnvironmentName = z.enum(ENVIRONMENTS);
const CompanyId = z
  .string()
  .refine((text) => parseCompanyId(text) !== undefined, 'must be a GUID, for example 5f0c1d3a-8a52-4c0e-9d1b-2f6f0f3b7a10')
  .transform((text) => text.trim().toLowerCase())
  .meta({ format: 'uuid', description: 'A GUID; compared case-insensitively, kept in lower case.' });
const Id = z.uuid('must be a GUID').transform((id) => id.toLowerCase());
/** The form of every name that a catalogue may give. PostgreSQL takes no NUL and no lone surrogate, in a query or in the audit. */
export const ResourceName = z.string().regex(/^[a-z][a-z0-9_]*$/, 'must be the name of a resource, for example employees');
const Time = z.string().meta({ format: 'date-time' });
const Count = z.int().min(0);

export const CompanyStatusName = z.enum(['active', 'reauthorization_required', 'paused']);
export const RunStatusName = z.enum(['queued', 'running', 'succeeded', 'failed', 'cancelled']);
const HoldStatusName = z.enum(['open', 'approved', 'rejected', 'superseded']);
export const EventTypeName = z.enum(EVENT_TYPES);
export const NotificationStatusName = z.enum(NOTIFICATION_STATUSES);
export type CompanyStatus = z.output<typeof CompanyStatusName>;
export type RunStatus = z.output<typeof RunStatusName>;

// Inputs

export const CompanyParams = z.object({ environment: EnvironmentName, company_id: CompanyId });
export const IdParams = z.object({ id: Id });

export const Onboard = z.strictObject({
  environment: EnvironmentName,
  company_id: CompanyId,
  refresh_token: z
    .string()
    .min(1, 'must not be empty')
    .regex(/^[\x20-\x7e]*$/, 'must be printable ASCII without line breaks')
    .meta({ format: 'password', description: 'Spent at once to prove it; the new pair is kept encrypted.' }),
});

export const CreateConnectLink = z.strictObject({ environment: EnvironmentName, company_id: CompanyId.optional() });

/** No body at all means the defaults. */
export const SyncCompany = z
  .strictObject({
    resources: z
      .array(ResourceName)
      .min(1)
      .max(200)
      .optional()
      .meta({ description: 'Resources of the catalogue; all of them if left out.' }),
    mode: z
      .enum(['resume', 'full'])
      .optional()
      .meta({ description: 'Go on from the last checkpoints (the default), or read everything anew.' }),
  })
  .nullish();

export const SyncMany = z
  .strictObject({
    status: z.literal('failed').optional().meta({ description: 'Only companies whose last run failed.' }),
    environment: EnvironmentName.optional(),
  })
  .nullish();

const cursor = z.string().optional().meta({ description: 'next_cursor of the previous answer.' });

export const CompanyQuery = queryOf({
  status: CompanyStatusName.optional(),
  environment: EnvironmentName.optional(),
  limit: limit(100, 500),
  cursor,
});
export const RunQuery = queryOf({
  company_id: CompanyId.optional(),
  environment: EnvironmentName.optional(),
  status: RunStatusName.optional(),
  limit: limit(100, 500),
  cursor,
});
export const HoldQuery = queryOf({
  status: HoldStatusName.optional(),
  environment: EnvironmentName.optional(),
  limit: limit(100, 500),
  cursor,
});
export const NotificationQuery = queryOf({
  status: NotificationStatusName.optional(),
  type: EventTypeName.optional(),
  environment: EnvironmentName.optional(),
  company_id: CompanyId.optional(),
  limit: limit(100, 500),
  cursor,
});
export const ChangeQuery = queryOf({
  after: z
    .string()
    .regex(/^\d{1,18}$/, 'must be the next_after of an earlier answer, or 0')
    .default('0')
    .meta({ description: 'next_after of the previous answer; 0 begins at the beginning.' }),
  resource: ResourceName.optional(),
  environment: EnvironmentName.optional(),
  limit: limit(1000, 10_000),
});

// Answers

export const Company = z
  .object({
    environment: EnvironmentName,
    company_id: z.string(),
    name: z.string().nullable(),
    status: CompanyStatusName,
    paused: z
      .boolean()
      .meta({ description: 'Whether a person has paused it; a company that must authorize again is not synced either way.' }),
    reauthorization_reason: z.string().optional().meta({ description: 'docs/errors.md says what each means.' }),
    token: z.object({ expires_at: Time.nullable(), refreshed_at: Time.nullable() }),
    resources: z
      .array(
        z.object({
          resource: z.string(),
          records: Count.meta({ description: 'Living records in the mirror.' }),
          last_verified_at: Time.nullable().meta({ description: 'Start of the last pass that was proved complete.' }),
          last_run_id: z.string().nullable(),
        }),
      )
      .meta({ description: 'The lists of the catalogue that were asked for at least once.' }),
    next_sync_at: Time.nullable(),
    authorize_url: z.string().optional().meta({ description: 'Where to authorize again, when that is required.' }),
  })
  .meta({ id: 'Company', description: 'An onboarded company and how fresh its mirror is.' });
export type CompanyModel = z.output<typeof Company>;

export const ConnectLink = z
  .object({
    url: z.string().meta({ format: 'uri', description: 'Shown this once: only its hash is kept.' }),
    expires_at: Time,
  })
  .meta({ id: 'ConnectLink', description: 'An address that starts the authorization flow.' });

const Failure = z.object({ code: z.string(), message: z.string() }).readonly();
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

export const Hold = z
  .object({
    id: z.string(),
    environment: z.string(),
    company_id: z.string(),
    resource: z.string(),
    run_id: z.string(),
    count: Count.meta({ description: 'Rows that would be marked deleted.' }),
    living: Count.meta({ description: 'Living rows when the hold was opened.' }),
    sample: z.array(z.string()).meta({ description: 'Some of the ids.' }),
    status: HoldStatusName,
    opened_at: Time,
  })
  .meta({ id: 'Hold', description: 'Deletions that wait for a person, since so many at once are rarely meant.' });

export const Notification = z
  .object({
    id: z.string().meta({ description: 'The same at every attempt: Muster-Event-Id.' }),
    type: EventTypeName,
    occurred_at: Time,
    environment: z.string(),
    company_id: z.string(),
    reason: z.string().optional(),
    run_id: z.string().optional(),
    resource: z.string().optional(),
    count: Count.optional(),
    status: NotificationStatusName,
    attempts: Count,
    next_attempt_at: Time.nullable(),
    delivered_at: Time.nullable(),
    last_error: z
      .object({ code: z.string(), status: z.int().optional(), cause: z.string().optional() })
      .readonly()
      .nullable()
      .meta({ description: 'Why the last attempt was not taken: docs/notifications.md lists the codes.' }),
  })
  .meta({ id: 'Notification', description: 'A state change that was, or is to be, told to the webhook.' });
export type NotificationModel = z.output<typeof Notification>;

export const Change = z
  .object({
    seq: z.int(),
    resource: z.string(),
    environment: z.string(),
    company_id: z.string(),
    id: z.string(),
    op: z.enum(['insert', 'update', 'delete', 'restore']),
    data: z.unknown().meta({ description: 'The record as the service sent it.' }),
    changed_at: Time,
    run_id: z.string().nullable(),
  })
  .meta({ id: 'Change', description: 'One change of one mirrored record.' });

const Problem = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: z.string().meta({ description: 'Stable; docs/errors.md says what each means and what to do.' }),
    errors: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
  })
  .meta({ id: 'Problem', description: 'RFC 9457 problem details.' });

/** A list, newest or smallest first, and where it goes on. */
export function pageOf<T extends z.ZodType>(item: T) {
  return z.object({ data: z.array(item), next_cursor: z.string().nullable() });
}

/** The answers of a route: those that are right, and problem+json for every other status. */
export function answers<T extends Record<number, z.ZodType>>(right: T) {
  return {
    ...right,
    default: { description: 'A problem', content: { 'application/problem+json': { schema: Problem } } },
  };
}
