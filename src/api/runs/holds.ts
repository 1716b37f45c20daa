import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { isMusterError } from '../../core/errors.js';
import type { Database } from '../../db/connection/database.js';
import { findHold, HOLD_CAUSES, HOLD_STATUSES, type HoldRow, listHolds } from '../../db/tables/holds.js';
import { approveHold, rejectHold } from '../../mirror/holds.js';
import { labelKey, labelRecords } from '../../mirror/record-labels.js';
import { audited, keyOf } from '../plumbing/audit.js';
import { type Caller, mayAct } from '../plumbing/caller.js';
import { CompanyName, withCompanyNames } from '../plumbing/company-names.js';
import { CompanyFilters, Count, EnvironmentName, filterOf, IdParams, listQuery, pageOf, Time } from '../plumbing/models.js';
import { operationsOf } from '../plumbing/operations.js';

const HoldStatusName = z.enum(HOLD_STATUSES);
const HoldCauseName = z.enum(HOLD_CAUSES);

const HoldQuery = listQuery({
  status: HoldStatusName.exactOptional(),
  cause: HoldCauseName.exactOptional(),
  ...CompanyFilters,
});

export const Hold = z
  .object({
    id: z.string(),
    environment: z.string(),
    company_id: z.string(),
    company_name: CompanyName,
    resource: z.string(),
    run_id: z.string(),
    cause: HoldCauseName.describe(
      'share: too many rows would be deleted at once. grant: no verified walk has received the rows since the company authorized again, perhaps by a person with fewer rights.',
    ),
    explanation: z.string().describe('The cause in a sentence.'),
    grant: z
      .object({ number: Count, authorized_at: Time.nullable() })
      .optional()
      .describe("With cause grant: the company's grant under which the rows are missing."),
    count: Count.describe('Rows that would be marked deleted.'),
    living: Count.describe('Living rows when the hold was opened or last renewed.'),
    sample: z.array(z.string()).describe('Some of the ids.'),
    samples: z
      .array(z.object({ id: z.string(), label: z.string().optional() }))
      .readonly()
      .describe(
        'The same ids. While the hold is open, callers who may decide on it also get a label from the living record, for example its name.',
      ),
    status: HoldStatusName,
    opened_at: Time,
  })
  .meta({ id: 'Hold', description: 'Deletions that wait for a person.' });
export type HoldModel = z.output<typeof Hold>;

/** PostgreSQL refuses NUL and lone surrogates, so control characters and surrogates are refused here. Not every reader of the OpenAPI document knows `\p{Cc}`. */
const ONE_LINE = new RegExp(String.raw`^[^\u0000-\u001f\u007f-\u009f\ud800-\udfff]*$`, 'u');

const Reason = z
  .string()
  .regex(ONE_LINE, 'must be one line')
  .refine((text) => [...text].length <= 500, 'must be at most 500 characters')
  .meta({ maxLength: 500 })
  .exactOptional()
  .describe('The reason, for the audit.');

/** A request without a body gives no reason. */
const Decision = z.strictObject({ reason: Reason }).nullish();

const ApproveGrants = z.strictObject({
  environment: EnvironmentName,
  cause: z.literal('grant'),
  reason: Reason,
  cursor: z.string().exactOptional().describe('next_cursor of the previous response.'),
});

/** The most holds that one call approves, so that it does not take minutes. */
const MOST = 200;

const ApprovedHolds = z
  .object({
    approved: Count,
    not_approved: Count.describe('Holds whose list is being walked, or whose company has authorized again since.'),
    next_cursor: z.string().nullable(),
  })
  .meta({ id: 'ApprovedHolds', description: 'How many of the open holds were approved.' });
export type ApprovedHoldsModel = z.output<typeof ApprovedHolds>;

const DECIDES = 'operator';

const { viewer, [DECIDES]: decider } = operationsOf('holds');

export function holdRoutes({ db }: { readonly db: Database }): FastifyPluginAsyncZod {
  return async (api) => {
    api.get(
      '/holds',
      viewer('listHolds', 'List the held deletions, newest first', { querystring: HoldQuery, response: { 200: pageOf(Hold) } }),
      async ({ caller, query }) => {
        const { data, nextCursor } = await listHolds(db, filterOf(query));
        return { data: await presentHolds(db, data, caller), next_cursor: nextCursor ?? null };
      },
    );

    api.post(
      '/holds/approve',
      decider('approveGrantHolds', 'Approve all holds of cause grant in an environment', {
        description: `Approves the open holds of cause grant, at most ${MOST} a call; pass back next_cursor for the next ones.`,
        body: ApproveGrants,
        response: { 200: ApprovedHolds },
      }),
      async ({ caller, body: { environment, cause, reason, cursor } }) => {
        const page = { limit: MOST, ...(cursor !== undefined && { cursor }) };
        const { data, nextCursor } = await listHolds(db, { environment, cause, status: 'open', ...page });
        let approved = 0;
        for (const hold of data) if (await isApproved(hold, caller, reason)) approved += 1;
        return { approved, not_approved: data.length - approved, next_cursor: nextCursor ?? null };
      },
    );

    for (const verb of ['approve', 'reject'] as const) {
      api.post(
        `/holds/:id/${verb}`,
        decider(`${verb}Hold`, verb === 'approve' ? 'Delete the held rows' : 'Keep the held rows', {
          ...(verb === 'approve' && { description: 'Deletes only rows that the newest verified walk did not receive.' }),
          params: IdParams,
          body: Decision,
          response: { 200: Hold },
          problems: ['hold_not_found', 'hold_not_open'],
        }),
        async ({ caller, params: { id }, body }) => {
          const hold = await findHold(db.prisma, id);
          const decide = verb === 'approve' ? approveHold : rejectHold;
          await audited(db, entryOf(hold, caller, verb, body?.reason), () => decide(db, id));
          const [decided] = await presentHolds(db, [await findHold(db.prisma, id)], caller);
          return decided!;
        },
      );
    }
  };

  /** Approves a hold, unless its list is being walked or another caller has decided on it first. */
  async function isApproved(hold: HoldRow, caller: Caller, reason: string | undefined): Promise<boolean> {
    try {
      await audited(db, entryOf(hold, caller, 'approve', reason), () => approveHold(db, hold.id));
      return true;
    } catch (error) {
      if (isMusterError(error, 'hold_not_open') || isMusterError(error, 'hold_not_found')) return false;
      throw error;
    }
  }
}

const entryOf = (hold: HoldRow, by: Caller, verb: 'approve' | 'reject', reason: string | undefined) =>
  ({
    by,
    action: `hold.${verb}`,
    company: keyOf(hold),
    details: { hold_id: hold.id, ...(reason !== undefined && { reason }) },
  }) as const;

/** Labels may name people, so only a caller who may decide gets them, and only while the hold is open. */
async function presentHolds(db: Database, holds: readonly HoldRow[], caller: Caller): Promise<HoldModel[]> {
  const isLabelled = ({ status }: HoldRow) => status === 'open' && mayAct(caller, DECIDES);
  const recordOf = (hold: HoldRow, id: string) => ({ ...keyOf(hold), resource: hold.resource, id });
  const labels = await labelRecords(
    db,
    holds.filter(isLabelled).flatMap((hold) => hold.sample.map((id) => recordOf(hold, id))),
  );
  // A decided hold may share records with an open one.
  const labelOf = (hold: HoldRow) => (id: string) => (isLabelled(hold) ? labels.get(labelKey(recordOf(hold, id))) : undefined);
  return withCompanyNames(
    db,
    holds.map((hold) => presentHold(hold, labelOf(hold))),
  );
}

function presentHold(hold: HoldRow, labelOf: (id: string) => string | undefined): HoldModel {
  const { id, environment, companyId, resource, runId, cause, grantNumber, authorizedAt, count, living, sample, status } = hold;
  const samples = sample.map((recordId) => {
    const label = labelOf(recordId);
    return { id: recordId, ...(label !== undefined && { label }) };
  });
  return {
    id,
    environment,
    company_id: companyId,
    resource,
    run_id: runId,
    cause,
    explanation: explain(hold),
    ...(grantNumber !== null && { grant: { number: grantNumber, authorized_at: authorizedAt?.toISOString() ?? null } }),
    count,
    living,
    sample,
    samples,
    status,
    opened_at: hold.openedAt.toISOString(),
  };
}

const DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' });

/** Why the rows wait, in a sentence. The token does not always say whether another person authorized. */
function explain({ cause, authorizedAt, resource, count, living }: HoldRow): string {
  if (cause === 'share') return `${count} of ${living} rows of ${resource} would be deleted at once.`;
  const since = authorizedAt ? `on ${DAY.format(authorizedAt)}` : 'since';
  return `Another person may have authorized ${since}: ${count} of ${living} rows of ${resource} are no longer visible.`;
}
