import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Database } from '../db/database.js';
import { findHold, HOLD_STATUSES, type HoldRow, listHolds } from '../db/tables/holds.js';
import { approveHold, rejectHold } from '../mirror/holds.js';
import { labelKey, labelRecords } from '../mirror/record-labels.js';
import { audited, keyOf } from './audit.js';
import { type Caller, mayAct } from './caller.js';
import { CompanyName, withCompanyNames } from './company-names.js';
import { answers, CompanyId, Count, EnvironmentName, IdParams, listQuery, pageOf, Time } from './models.js';

const HoldStatusName = z.enum(HOLD_STATUSES);

const HoldQuery = listQuery({
  status: HoldStatusName.exactOptional(),
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
    count: Count.meta({ description: 'Rows that would be marked deleted.' }),
    living: Count.meta({ description: 'Living rows when the hold was opened.' }),
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
  .meta({ id: 'Hold', description: 'Deletions that wait for a person, since so many at once are rarely meant.' });
export type HoldModel = z.output<typeof Hold>;

/** A request without a body gives no reason. A control character or half a letter would reach PostgreSQL, which refuses them. */
const Decision = z
  .strictObject({
    reason: z
      .string()
      .regex(/^[^\p{Cc}\p{Cs}]{0,500}$/u, 'must be one line of at most 500 characters')
      .exactOptional()
      .meta({ description: 'Why; the audit keeps it.' }),
  })
  .nullish();

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
          const entry = { by: caller, action: `hold.${verb}`, company: keyOf(hold), details: { hold_id: id, ...body } } as const;
          const decide = verb === 'approve' ? approveHold : rejectHold;
          await audited(db, entry, () => decide(db, id));
          const [decided] = await presentHolds(db, [await findHold(db.prisma, id)], caller);
          return decided!;
        },
      );
    }
  };
}

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
  const { id, environment, companyId, resource, runId, count, living, sample, status } = hold;
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
    count,
    living,
    sample,
    samples,
    status,
    opened_at: hold.openedAt.toISOString(),
  };
}
