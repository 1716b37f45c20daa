import type { Readable } from 'node:stream';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Database } from '../../db/connection/database.js';
import { stampChanges } from '../../db/tables/change-batches.js';
import { type ChangePage, type ChangeRow, type ChangeQuery as ChangesAsked, readChanges } from '../../db/tables/feed.js';
import type { LargeResponses } from '../plumbing/large-responses.js';
import { answers, EnvironmentName, limit, queryOf, ResourceName, Sequence, SequenceAfter, Time } from '../plumbing/models.js';
import { textOf } from '../plumbing/text-portions.js';

const NDJSON = 'application/x-ndjson';
/** Lines have no other place for it. */
const NEXT_AFTER = 'X-Next-After';
const FEED = 'X-Feed';
/** A change has about so many bytes beside its data. */
const MEMBERS_BYTES = 400;

const ChangeQuery = queryOf({
  after: SequenceAfter.meta({ description: 'next_after of the previous answer; 0 begins at the beginning.' }),
  resource: ResourceName.exactOptional(),
  environment: EnvironmentName.exactOptional(),
  feed: z
    .uuid('must be the feed of an earlier answer')
    .exactOptional()
    .meta({ description: 'feed of the previous answer: another feed is answered 410, even where it has grown past `after`.' }),
  limit: limit(1000, 10_000),
});

export const Change = z
  .object({
    seq: Sequence,
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

export function changeRoutes({
  db,
  largeResponses,
}: {
  readonly db: Database;
  readonly largeResponses: LargeResponses;
}): FastifyPluginAsyncZod {
  return async (api) => {
    api.get(
      '/changes',
      {
        config: { role: 'viewer' },
        schema: {
          tags: ['changes'],
          operationId: 'listChanges',
          summary: 'Read the change feed',
          description: `Always pass back next_after and feed: no committed change is then missed or repeated, whatever is written meanwhile, and numbers of another database are noticed. A page ends at limit, or at 8 MB of records, with one change at least. With Accept: ${NDJSON} the answer is one change a line; next_after and feed are in the headers ${NEXT_AFTER} and ${FEED} of either answer.`,
          querystring: ChangeQuery,
          response: answers(
            {
              200: {
                description: 'A page of the feed',
                headers: {
                  [NEXT_AFTER]: { description: 'next_after, where the answer is lines, too.', type: 'integer' },
                  [FEED]: { description: 'feed, where the answer is lines, too.', type: 'string', format: 'uuid' },
                },
                content: {
                  'application/json': { schema: z.object({ data: z.array(Change), next_after: Sequence, feed: z.uuid() }) },
                  [NDJSON]: { schema: z.string().meta({ description: 'A Change a line, each with a line feed at its end.' }) },
                },
              },
            },
            ['changes_expired', 'feed_restarted', 'overloaded'],
          ),
        },
      },
      async ({ query, headers }, reply) => {
        // A batch is read once it is numbered: the batches that were committed since the last call are numbered now.
        await stampChanges(db);
        const isLines = headers.accept?.includes(NDJSON) ?? false;
        const { rows, nextAfter, feed } = await largeResponses.read(
          reply,
          (mostBytes) => (isLines ? readUntilFound : readChanges)(db, { ...query, mostBytes }),
          (page) => page.rows.reduce((bytes, row) => bytes + sizeOf(row), 0),
        );
        // The changes are JSON already: parsed and written again, their numbers would lose digits.
        reply.serializer((text: string) => text);
        reply.header(NEXT_AFTER, nextAfter).header(FEED, feed);
        if (isLines) return raw(reply.type(NDJSON), textOf({ rows, sizeOf, present: presentLine }));
        return raw(
          reply.type('application/json; charset=utf-8'),
          textOf({
            rows,
            sizeOf,
            present: presentChange,
            before: '{"data":[',
            between: ',',
            after: `],"next_after":${nextAfter},"feed":"${feed}"}`,
          }),
        );
      },
    );
  };
}

/** Lines alone cannot say from where to go on: there are none at the end of the feed only. */
async function readUntilFound(db: Database, query: ChangesAsked): Promise<ChangePage> {
  const page = await readChanges(db, query);
  return page.isCutShort && page.rows.length === 0 ? readUntilFound(db, { ...query, after: page.nextAfter }) : page;
}

function sizeOf({ data }: ChangeRow): number {
  return MEMBERS_BYTES + (data?.length ?? 0);
}

function presentLine(change: ChangeRow): string {
  return `${presentChange(change)}\n`;
}

/** The text of a `Change`; `data` is the text that PostgreSQL keeps, with every digit. */
function presentChange({ seq, resource, environment, companyId, id, op, data, changedAt, runId }: ChangeRow): string {
  const members = { resource, environment, company_id: companyId, id, op, changed_at: changedAt, run_id: runId };
  return `{"seq":${seq},${JSON.stringify(members).slice(1, -1)},"data":${data ?? 'null'}}`;
}

/** Sends a text or a stream past the type of the reply, which takes models only. */
function raw(reply: { send(text: never): unknown }, text: string | Readable): never {
  return reply.send(text as never) as never;
}
