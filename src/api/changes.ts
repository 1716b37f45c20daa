import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Database } from '../db/database.js';
import { answers, Change, ChangeQuery } from './models.js';

export interface ChangeRoutesDependencies {
  readonly db: Database;
  /** Numbers the batches that were committed since the last call, so that they can be read. */
  stampChanges(): Promise<void>;
}

interface ChangeRow {
  readonly seq: string;
  readonly resource: string;
  readonly environment: string;
  readonly company_id: string;
  readonly id: string;
  readonly op: string;
  readonly data: string | null;
  readonly changed_at: Date;
  readonly run_id: string | null;
}

/**
 * What the view mirror.changes shows, from the batch on that holds $1: asked of what is beneath it, because the view's number
 * is a sum that no index knows, and a consumer at the end of a long feed must not read all of it again.
 */
const CHANGES = `
  SELECT first_seq + position AS seq, resource, environment, company_id, record_id AS id, op, data::text AS data, changed_at, run_id
  FROM muster.stamped_changes
  WHERE first_seq >= COALESCE((SELECT max(first_seq) FROM muster.change_batches WHERE first_seq <= $1), 0)
    AND first_seq + position > $1 AND ($2::text IS NULL OR resource = $2) AND ($3::text IS NULL OR environment = $3)
  ORDER BY first_seq, position LIMIT $4`;

const NDJSON = 'application/x-ndjson';

export function changeRoutes({ db, stampChanges }: ChangeRoutesDependencies): FastifyPluginAsyncZod {
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
      async ({ query: { after, resource, environment, limit }, headers }, reply) => {
        await stampChanges();
        const { rows } = await db.pool.query<ChangeRow>(CHANGES, [after, resource ?? null, environment ?? null, limit]);
        const lines = rows.map(changeText);
        // Already JSON: read and written again, its numbers would lose digits.
        reply.serializer((text: string) => text);
        if (headers.accept?.includes(NDJSON)) return raw(reply.type(NDJSON), lines.map((line) => `${line}\n`).join(''));
        return raw(
          reply.type('application/json; charset=utf-8'),
          `{"data":[${lines.join(',')}],"next_after":${rows.at(-1)?.seq ?? BigInt(after)}}`,
        );
      },
    );
  };
}

/** A change as JSON; `data` is the text that PostgreSQL keeps, with every digit. */
function changeText({ seq, data, changed_at, resource, environment, company_id, id, op, run_id }: ChangeRow): string {
  const members = JSON.stringify({ resource, environment, company_id, id, op, changed_at, run_id }).slice(1, -1);
  return `{"seq":${seq},${members},"data":${data ?? 'null'}}`;
}

/** Past the reply's type, which knows models and no text. */
function raw(reply: { send(text: never): unknown }, text: string): never {
  return reply.send(text as never) as never;
}
