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
import { answers, CompanyId, Count, EnvironmentName, IdParams, listQuery, pageOf, Time } from '../plumbing/models.js';

const HoldStatusName = z.enum(HOLD_STATUSES);
const HoldCauseName = z.enum(HOLD_CAUSES);

const HoldQuery = listQuery({
  status: HoldStatusName.exactOptional(),
  cause: HoldCauseName.exactOptional(),
  environment: EnvironmentName.exactOptional(),
  company_id: CompanyId.exactOptional(),
});

export const Hold = z
  .object({
    id: z.string(),
    environment: z.string(),
    company_id: z.string(),
    company_name: CompanyName,
    resource: z.string(),
    run_id: z.string(),
    cause: HoldCauseName.meta({
      description:
        'share: too many rows would be deleted at once. grant: no verified walk has received the rows since the company was authorized again, perhaps by a person with fewer rights.',
    }),
    explanation: z.string().meta({ description: 'The cause in a sentence.' }),
    grant: z
      .object({ number: Count, authorized_at: Time.nullable() })
      .optional()
      .meta({ description: 'Of cause grant: the grant of the company that lacks the rows.' }),
    count: Count.meta({ description: 'Rows that would be marked deleted.' }),
    living: Count.meta({ description: 'Living rows when the hold was opened or last renewed.' }),
    sample: z.array(z.string()).meta({ description: 'Some of the ids.' }),
    samples: z
      .array(z.object({ id: z.string(), label: z.string().optional() }))
      .readonly()
      .meta({
        description:
          'The same ids. While the hold is open, label is what the living record says of itself, its name for example, to those who may decide.',
      }),
    status: HoldStatusName,
    opened_at: Time,
  })
  .meta({ id: 'Hold', description: 'Deletions that wait for a person.' });
export type HoldModel = z.output<typeof Hold>;

/** A control character or half a letter would reach PostgreSQL, which refuses them. */
const Reason = z
  .string()
  .max(500, 'must be at most 500 characters')
  .regex(/^[^\u0000-\u001f\u007f-\u009f\ud800-\udfff]*$/u, 'must be one line')
  .exactOptional()
  .meta({ description: 'Why; the audit keeps it.' });

/** A request without a body gives no reason. */
const Decision = z.strictObject({ reason: Reason }).nullish();

const ApproveGrants = z.strictObject({
  environment: EnvironmentName,
  cause: z.literal('grant'),
  reason: Reason,
  cursor: z.string().exactOptional().meta({ description: 'next_cursor of the previous answer.' }),
});

/** Holds that one call approves, so that its answer does not take minutes. */
const MOST = 200;

const ApprovedHolds = z
  .object({
    approved: Count,
    not_approved: Count.meta({ description: 'Holds whose list is being walked, or whose company was authorized again since.' }),
    next_cursor: z.string().nullable(),
  })
  .meta({ id: 'ApprovedHolds', description: 'What became of the open holds that were looked at.' });
export type ApprovedHoldsModel = z.output<typeof ApprovedHolds>;

/** The role that decides on holds. */
const DECIDES = 'operator';

const tags = ['holds'];

export function holdRoutes({ db }: { readonly db: Database }): FastifyPluginAsyncZod {
  return async (api) => {
    api.get(
      '/holds',
      {
        config: { role: 'viewer' },
        schema: {
          tags,
          operationId: 'listHolds',
          summary: 'List the held deletions, newest first',
          querystring: HoldQuery,
          response: answers({ 200: pageOf(Hold) }),
        },
      },
      async ({ caller, query: { company_id, ...query } }) => {
        const filter = { ...query, ...(company_id && { companyId: company_id }) };
        const { data, nextCursor } = await listHolds(db, filter);
        return { data: await presentHolds(db, data, caller), next_cursor: nextCursor ?? null };
      },
    );

    api.post(
      '/holds/approve',
      {
        config: { role: DECIDES },
        schema: {
          tags,
          operationId: 'approveGrantHolds',
          summary: 'Delete what is held back in an environment since other people authorized',
          description: `Approves the open holds of cause grant, at most ${MOST} a call; pass back next_cursor for the next ones.`,
          body: ApproveGrants,
          response: answers({ 200: ApprovedHolds }),
        },
      },
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
        {
          config: { role: DECIDES },
          schema: {
            tags,
            operationId: `${verb}Hold`,
            summary: verb === 'approve' ? 'Delete what was held back' : 'Keep what was held back',
            ...(verb === 'approve' && { description: 'Deletes only what the newest verified walk lacked.' }),
            params: IdParams,
            body: Decision,
            response: answers({ 200: Hold }, ['hold_not_found', 'hold_not_open']),
          },
        },
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

  /** Approves a hold, unless that must wait for a walk or it was decided meanwhile. */
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

/** How a person's decision stands in the audit. */
const entryOf = (hold: HoldRow, by: Caller, verb: 'approve' | 'reject', reason: string | undefined) =>
  ({
    by,
    action: `hold.${verb}`,
    company: keyOf(hold),
    details: { hold_id: hold.id, ...(reason !== undefined && { reason }) },
  }) as const;

/** The holds as the API shows them. What records say of themselves may be of people: only who decides on an open hold is told. */
async function presentHolds(db: Database, holds: readonly HoldRow[], caller: Caller): Promise<HoldModel[]> {
  const isTold = ({ status }: HoldRow) => status === 'open' && mayAct(caller, DECIDES);
  const recordOf = (hold: HoldRow, id: string) => ({ ...keyOf(hold), resource: hold.resource, id });
  const labels = await labelRecords(
    db,
    holds.filter(isTold).flatMap((hold) => hold.sample.map((id) => recordOf(hold, id))),
  );
  // A hold that is decided may have records of one that is open.
  const labelOf = (hold: HoldRow) => (id: string) => (isTold(hold) ? labels.get(labelKey(recordOf(hold, id))) : undefined);
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

/** Why the rows wait, in a sentence. Whether it was another person the token does not always say. */
function explain({ cause, authorizedAt, resource, count, living }: HoldRow): string {
  if (cause === 'share') return `${count} of ${living} rows of ${resource} would be deleted at once.`;
  const since = authorizedAt ? `on ${DAY.format(authorizedAt)}` : 'since';
  return `Another person may have authorized ${since}: ${count} of ${living} rows of ${resource} are no longer visible.`;
}
