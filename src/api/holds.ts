import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Database } from '../db/database.js';
import { findHold, type HoldRow, listHolds } from '../db/tables/holds.js';
import { approveHold, rejectHold } from '../mirror/holds.js';
import { audited } from './audit.js';
import { answers, Count, EnvironmentName, IdParams, listQuery, pageOf, presentPage, Time } from './models.js';

const HoldStatusName = z.enum(['open', 'approved', 'rejected', 'superseded']);

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
export type HoldModel = z.output<typeof Hold>;

const tags = ['holds'];

export function holdRoutes({ db }: { readonly db: Database }): FastifyPluginAsyncZod {
  return async (api) => {
    api.get(
      '/holds',
      {
        schema: {
          tags,
          operationId: 'listHolds',
          summary: 'List the held deletions, newest first',
          querystring: listQuery({ status: HoldStatusName.exactOptional(), environment: EnvironmentName.exactOptional() }),
          response: answers({ 200: pageOf(Hold) }),
        },
      },
      async ({ query }) => presentPage(await listHolds(db, query), presentHold),
    );

    for (const verb of ['approve', 'reject'] as const) {
      api.post(
        `/holds/:id/${verb}`,
        {
          schema: {
            tags,
            operationId: `${verb}Hold`,
            summary: verb === 'approve' ? 'Delete what was held back' : 'Keep what was held back',
            ...(verb === 'approve' && { description: 'Deletes only what the newest verified walk lacked.' }),
            params: IdParams,
            response: answers({ 200: Hold }),
          },
        },
        async ({ params: { id } }) => {
          const hold = await db.prisma.hold.findUnique({ where: { id } });
          const details = { hold_id: id, environment: hold?.environment, company_id: hold?.companyId };
          const decide = verb === 'approve' ? approveHold : rejectHold;
          await audited(db, { action: `hold.${verb}`, details }, () => decide(db, id));
          return presentHold(await findHold(db.prisma, id));
        },
      );
    }
  };
}

function presentHold(hold: HoldRow): HoldModel {
  const { id, environment, resource, count, living, sample, status } = hold;
  const { companyId: company_id, runId: run_id } = hold;
  return { id, environment, company_id, resource, run_id, count, living, sample, status, opened_at: hold.openedAt.toISOString() };
}
