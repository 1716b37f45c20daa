import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Database } from '../../db/connection/database.js';
import { type BarrierRow, readBarriers } from '../../db/tables/barriers.js';
import { stampChanges } from '../../db/tables/change-batches.js';
import { EnvironmentName, limit, queryOf, ResourceName, Sequence, SequenceAfter, Time } from '../plumbing/models.js';
import { operationsOf } from '../plumbing/operations.js';

const BarrierQuery = queryOf({
  after: SequenceAfter.describe('next_after of the previous response; 0 begins at the oldest barrier.'),
  resource: ResourceName.exactOptional(),
  environment: EnvironmentName.exactOptional(),
  limit: limit(1000, 10_000),
});

export const Barrier = z
  .object({
    number: Sequence,
    environment: z.string(),
    company_id: z.string(),
    resource: z.string(),
    seq: Sequence,
    verified_at: Time,
    records: z.int(),
    run_id: z.string(),
    grant_number: z.int().nullable().describe('The grant of the company under which the list was proved.'),
  })
  .meta({
    id: 'Barrier',
    description:
      'A reader that has loaded all changes of this list up to and including seq, and none after it, has the list as a verified walk received it: complete as of verified_at.',
  });

const { viewer } = operationsOf('changes');

export function barrierRoutes({ db }: { readonly db: Database }): FastifyPluginAsyncZod {
  return async (api) => {
    api.get(
      '/barriers',
      viewer('listBarriers', 'Read the places in the change feed at which lists are complete', {
        description:
          'Always pass back next_after: each barrier then comes once, in the order in which they became known. With a filter a page may be empty although more follow; at the end next_after equals after.',
        querystring: BarrierQuery,
        response: { 200: z.object({ data: z.array(Barrier), next_after: Sequence }) },
      }),
      async ({ query }) => {
        await stampChanges(db);
        const { rows, nextAfter } = await readBarriers(db, query);
        return { data: rows.map(presentBarrier), next_after: Number(nextAfter) };
      },
    );
  };
}

function presentBarrier({ number, environment, companyId, resource, seq, verifiedAt, records, runId, grantNumber }: BarrierRow) {
  return {
    number: Number(number),
    environment,
    company_id: companyId,
    resource,
    seq: Number(seq),
    verified_at: verifiedAt.toISOString(),
    records,
    run_id: runId,
    grant_number: grantNumber,
  };
}
