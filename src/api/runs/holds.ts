import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { isMusterError } from '../../core/errors.js';
import type { Database } from '../../db/connection/database.js';
import { cursorAt, readCursor } from '../../db/statements/cursor.js';
import { findHold, type HoldRow, listHolds } from '../../db/tables/holds.js';
import { approveHold, type Approval as HoldApproval, readRowsOfHold, rejectHold } from '../../mirror/holds.js';
import type { WorkMetrics } from '../../observability/work-metrics.js';
import { audited, keyOf } from '../plumbing/audit.js';
import type { Caller } from '../plumbing/caller.js';
import { companyFilterOf } from '../plumbing/company-names.js';
import { CSV } from '../plumbing/csv.js';
import { CompanySearchFilters, Count, EnvironmentName, IdParams, listQuery, pageOf, presentPage } from '../plumbing/models.js';
import { operationsOf } from '../plumbing/operations.js';
import { DECIDES, Hold, HoldCauseName, HoldStatusName, presentHolds } from './hold-model.js';
import { holdRowsCsv, ID_OF_ROW, labelRows, RowOfHold } from './hold-rows.js';

const HoldQuery = listQuery({
  status: HoldStatusName.exactOptional(),
  cause: HoldCauseName.exactOptional(),
  ...CompanySearchFilters,
});

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

const Approval = z
  .strictObject({
    reason: Reason,
    run_id: IdParams.shape.id
      .exactOptional()
      .describe('run_id of the hold as the caller has seen it: if a later walk has renewed the hold, nothing is deleted (409).'),
  })
  .nullish();

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

const { viewer, [DECIDES]: decider } = operationsOf('holds');

export interface HoldRoutesDependencies {
  readonly db: Database;
  readonly work?: WorkMetrics | undefined;
}

export function holdRoutes({ db, work }: HoldRoutesDependencies): FastifyPluginAsyncZod {
  return async (api) => {
    api.get(
      '/holds',
      viewer('listHolds', 'List the held deletions, newest first', { querystring: HoldQuery, response: { 200: pageOf(Hold) } }),
      async ({ caller, query }) => {
        const page = await listHolds(db, await companyFilterOf(db, query));
        return { ...presentPage(page, (hold) => hold), data: await presentHolds(db, page.data, caller) };
      },
    );

    api.get(
      '/holds/:id',
      viewer('showHold', 'Show a hold', { params: IdParams, response: { 200: Hold }, problems: ['hold_not_found'] }),
      async ({ caller, params: { id } }) => {
        const [hold] = await presentHolds(db, [await findHold(db.prisma, id)], caller);
        return hold!;
      },
    );

    api.get(
      '/holds/:id/rows',
      viewer('listHoldRows', 'List the rows that approving would mark deleted', {
        description: `By id. With Accept: ${CSV} the response is all of them as CSV. They can be told only while the hold is open and its walk is the newest of the list; else 409 hold_not_open.`,
        params: IdParams,
        querystring: listQuery({}),
        response: {
          200: {
            description: 'The rows of the hold',
            content: {
              'application/json': { schema: pageOf(RowOfHold) },
              [CSV]: { schema: z.string().describe('RFC 4180, with a line of names: id, and label for callers who may decide.') },
            },
          },
        },
        problems: ['hold_not_found', 'hold_not_open'],
      }),
      async ({ caller, params: { id }, query: { limit, cursor }, headers }, reply) => {
        if (headers.accept?.includes(CSV)) {
          // The first read comes before the status, so that a hold without rows to tell is refused.
          const text = await holdRowsCsv(db, id, caller);
          return reply.type(`${CSV}; charset=utf-8; header=present`).send(text as never) as never;
        }
        const after = cursor === undefined ? undefined : readCursor(cursor, ID_OF_ROW);
        const { hold, ids } = await readRowsOfHold(db, { id, after, limit: limit + 1 });
        const shown = ids.slice(0, limit);
        return {
          data: await labelRows(db, hold, shown, caller),
          next_cursor: ids.length > limit ? cursorAt(shown.at(-1)!) : null,
        };
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
          body: verb === 'approve' ? Approval : Decision,
          response: { 200: Hold },
          problems: ['hold_not_found', 'hold_not_open'],
        }),
        async ({ caller, params: { id }, body }) => {
          const hold = await findHold(db.prisma, id);
          const { reason, run_id: ofRun }: NonNullable<z.output<typeof Approval>> = body ?? {};
          const decision = { by: caller.name, reason };
          await audited(db, entryOf(hold, caller, verb, reason), () =>
            verb === 'approve' ? approve(hold, { ...decision, ofRun }) : rejectHold(db, id, decision),
          );
          const [decided] = await presentHolds(db, [await findHold(db.prisma, id)], caller);
          return decided!;
        },
      );
    }
  };

  async function approve(hold: HoldRow, approval: HoldApproval): Promise<void> {
    const deleted = await approveHold(db, hold.id, approval);
    work?.recordsDeleted(hold, deleted);
  }

  /** Approves a hold, unless its list is being walked or another caller has decided on it first. */
  async function isApproved(hold: HoldRow, caller: Caller, reason: string | undefined): Promise<boolean> {
    try {
      await audited(db, entryOf(hold, caller, 'approve', reason), () => approve(hold, { by: caller.name, reason }));
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
