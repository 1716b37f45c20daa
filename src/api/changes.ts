import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Database } from '../db/database.js';
import { type ChangeRow, readChanges, stampChanges } from '../db/tables/change-batches.js';
import { answers, EnvironmentName, limit, queryOf, ResourceName, Time } from './models.js';

const ChangeQuery = queryOf({
  after: z
    .string()
    .regex(/^\d{1,18}$/, 'must be the next_after of an earlier answer, or 0')
    .default('0')
    .meta({ description: 'next_after of the previous answer; 0 begins at the beginning.' }),
  resource: ResourceName.exactOptional(),
  environment: EnvironmentName.exactOptional(),
  limit: limit(1000, 10_000),
});

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

const NDJSON = 'application/x-ndjson';

export function changeRoutes({ db }: { readonly db: Database }): FastifyPluginAsyncZod {
  return async (api) => {
    api.get(
      '/changes',
      {
        schema: {
          tags: ['changes'],
          operationId: 'listChanges',
          summary: 'Read the change feed',
          description: `Always pass back next_after: no committed change is then missed or repeated, whatever is written meanwhile. With Accept: ${NDJSON} the answer is one change a line; go on after the seq of the last one.`,
          querystring: ChangeQuery,
          response: answers({ 200: z.object({ data: z.array(Change), next_after: z.int() }) }),
        },
      },
      async ({ query, headers }, reply) => {
        // A batch is read once it is numbered: the batches that were committed since the last call are numbered now.
        await stampChanges(db);
        const rows = await readChanges(db, query);
        const changes = rows.map(presentChange);
        // The changes are JSON already: parsed and written again, their numbers would lose digits.
        reply.serializer((text: string) => text);
        if (headers.accept?.includes(NDJSON)) return raw(reply.type(NDJSON), changes.map((change) => `${change}\n`).join(''));
        return raw(
          reply.type('application/json; charset=utf-8'),
          `{"data":[${changes.join(',')}],"next_after":${rows.at(-1)?.seq ?? BigInt(query.after)}}`,
        );
      },
    );
  };
}

/** The text of a `Change`; `data` is the text that PostgreSQL keeps, with every digit. */
function presentChange({ seq, resource, environment, companyId, id, op, data, changedAt, runId }: ChangeRow): string {
  const members = { resource, environment, company_id: companyId, id, op, changed_at: changedAt, run_id: runId };
  return `{"seq":${seq},${JSON.stringify(members).slice(1, -1)},"data":${data ?? 'null'}}`;
}

/** Sends a text past the type of the reply, which takes models only. */
function raw(reply: { send(text: never): unknown }, text: string): never {
  return reply.send(text as never) as never;
}
