import type { Readable } from 'node:stream';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { MusterError } from '../../core/errors.js';
import type { Database } from '../../db/connection/database.js';
import { stampChanges } from '../../db/tables/change-batches.js';
import {
  type ChangePage,
  type ChangeRow,
  type ChangeQuery as FeedQuery,
  readChanges,
  readNewestChanges,
} from '../../db/tables/feed.js';
import type { LargeListDependencies } from '../plumbing/large-responses.js';
import {
  CompanyFilters,
  filterOf,
  limit,
  queryOf,
  RecordId,
  ResourceName,
  Sequence,
  SequenceAfter,
  Time,
} from '../plumbing/models.js';
import { operationsOf } from '../plumbing/operations.js';
import { textOf } from '../plumbing/text-portions.js';

const NDJSON = 'application/x-ndjson';
/** A response of lines has no member for these, so they are headers. */
const NEXT_AFTER = 'X-Next-After';
const NEXT_BEFORE = 'X-Next-Before';
const FEED = 'X-Feed';
/** About how many bytes a change has in addition to its data. */
const MEMBERS_BYTES = 400;

const ChangeQuery = queryOf({
  after: SequenceAfter.describe('next_after of the previous response; 0 begins at the beginning.'),
  resource: ResourceName.exactOptional(),
  ...CompanyFilters,
  id: RecordId.exactOptional().describe('The id of a record; with company_id it is found much sooner.'),
  order: z
    .literal('newest')
    .exactOptional()
    .describe(
      'Newest first, for people, without `after` and `feed`: pass back next_before. A consumer would miss changes this way.',
    ),
  before: z
    .string()
    .regex(/^\d{1,18}$/, 'must be the next_before of an earlier answer')
    .exactOptional()
    .describe('With order=newest: next_before of the previous response.'),
  feed: z
    .uuid('must be the feed of an earlier answer')
    .exactOptional()
    .describe('feed of the previous response. If the feed is another one now, even one longer than `after`: 410.'),
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
    data: z.unknown().describe('The record as the service sent it.'),
    changed_at: Time,
    run_id: z.string().nullable(),
  })
  .meta({ id: 'Change', description: 'One change of one mirrored record.' });

const ChangesPage = z.object({
  data: z.array(Change),
  next_after: Sequence.describe('With order=newest: the end of the feed, where a reader who follows it goes on.'),
  next_before: Sequence.nullable().optional().describe('Only with order=newest; null on the last page.'),
  feed: z.uuid(),
});
export type ChangesPageModel = z.output<typeof ChangesPage>;

const { viewer } = operationsOf('changes');

export function changeRoutes({ db, largeResponses }: LargeListDependencies): FastifyPluginAsyncZod {
  return async (api) => {
    api.get(
      '/changes',
      viewer('listChanges', 'Read the change feed', {
        description: `The feed of all companies, or of one company, one list or one record. Always pass back next_after and feed: then no committed change is missed or repeated, whatever is written concurrently, and a feed of another database is refused. A page ends at limit, or at 8 MB of records, and has at least one change. With Accept: ${NDJSON} the response is one change a line. Either response has next_after and feed in the headers ${NEXT_AFTER} and ${FEED}.`,
        querystring: ChangeQuery,
        response: {
          200: {
            description: 'A page of the feed',
            headers: {
              [NEXT_AFTER]: { description: 'next_after, in either format.', type: 'integer' },
              [NEXT_BEFORE]: {
                description: 'next_before, in either format, with order=newest; absent on the last page.',
                type: 'integer',
              },
              [FEED]: { description: 'feed, in either format.', type: 'string', format: 'uuid' },
            },
            content: {
              'application/json': { schema: ChangesPage },
              [NDJSON]: { schema: z.string().describe('One Change a line; each line ends with a line feed.') },
            },
          },
        },
        problems: ['changes_expired', 'feed_restarted', 'overloaded'],
      }),
      async ({ query: given, headers }, reply) => {
        const { order, before, ...query } = filterOf(given);
        const isNewestFirst = order === 'newest';
        if (isNewestFirst ? query.after !== '0' || query.feed !== undefined : before !== undefined)
          throw new MusterError('invalid_request', 'Give order=newest and before, or after and feed: the two orders do not mix.');
        // Only numbered batches are read, so this numbers the batches committed since the last call.
        await stampChanges(db);
        const isLines = headers.accept?.includes(NDJSON) ?? false;
        const readOldest = isLines ? readUntilFound : readChanges;
        const { rows, nextAfter, nextBefore, feed } = await largeResponses.read(
          reply,
          async (mostBytes): Promise<Found> => {
            if (!isNewestFirst) return readOldest(db, { ...query, mostBytes });
            const { newest, ...page } = await readNewestChanges(db, { ...query, before, mostBytes });
            return { ...page, nextAfter: newest };
          },
          (page) => page.rows.reduce((bytes, row) => bytes + sizeOf(row), 0),
        );
        // The changes are JSON already. Parsing and serializing them again would lose digits of numbers.
        reply.serializer((text: string) => text);
        reply.header(NEXT_AFTER, nextAfter).header(FEED, feed);
        if (nextBefore != null) reply.header(NEXT_BEFORE, nextBefore);
        if (isLines) return raw(reply.type(NDJSON), textOf({ rows, sizeOf, present: presentLine }));
        const further = isNewestFirst ? `,"next_before":${nextBefore ?? 'null'}` : '';
        return raw(
          reply.type('application/json; charset=utf-8'),
          textOf({
            rows,
            sizeOf,
            present: presentChange,
            before: '{"data":[',
            between: ',',
            after: `],"next_after":${nextAfter}${further},"feed":"${feed}"}`,
          }),
        );
      },
    );
  };
}

/** A page in either order. */
interface Found extends Pick<ChangePage, 'rows' | 'nextAfter' | 'feed'> {
  readonly nextBefore?: string | null;
}

/** A client that reads lines takes a response without lines for the end of the feed, so an empty page is never sent before it. */
async function readUntilFound(db: Database, query: FeedQuery): Promise<ChangePage> {
  const page = await readChanges(db, query);
  return page.isCutShort && page.rows.length === 0 ? readUntilFound(db, { ...query, after: page.nextAfter }) : page;
}

function sizeOf({ data }: ChangeRow): number {
  return MEMBERS_BYTES + (data?.length ?? 0);
}

function presentLine(change: ChangeRow): string {
  return `${presentChange(change)}\n`;
}

/** The JSON text of a `Change`. Its `data` is the text that PostgreSQL keeps, with every digit. */
function presentChange({ seq, resource, environment, companyId, id, op, data, changedAt, runId }: ChangeRow): string {
  const members = { resource, environment, company_id: companyId, id, op, changed_at: changedAt, run_id: runId };
  return `{"seq":${seq},${JSON.stringify(members).slice(1, -1)},"data":${data ?? 'null'}}`;
}

/** Sends a text or a stream, although the type of the reply allows models only. */
function raw(reply: { send(text: never): unknown }, text: string | Readable): never {
  return reply.send(text as never) as never;
}
