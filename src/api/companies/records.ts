import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Clock } from '../../core/clock.js';
import { type CompanyKey, companyNotFound } from '../../core/company.js';
import { isMusterError, MusterError } from '../../core/errors.js';
import { parseObject } from '../../core/json.js';
import { changedMembers, membersOf } from '../../core/json-members.js';
import { stampChanges } from '../../db/tables/change-batches.js';
import { findConnection } from '../../db/tables/connections.js';
import { type ChangeRow, readNewestChanges } from '../../db/tables/feed.js';
import { findList } from '../../db/tables/list-proofs.js';
import { type ForgetDependencies, isSuppressed } from '../../erasure/forget.js';
import { labelOfRecord } from '../../mirror/record-labels.js';
import { type FoundRecord, searchRecords } from '../../mirror/record-search.js';
import { countChildren, findSimilarIds, readStoredRecord } from '../../mirror/stored-record.js';
import { audited } from '../plumbing/audit.js';
import { CompanyName, withCompanyNames } from '../plumbing/company-names.js';
import type { LargeListDependencies } from '../plumbing/large-responses.js';
import {
  CompanyParams,
  Count,
  EnvironmentName,
  limit,
  listQuery,
  pageOf,
  presentTime,
  queryOf,
  RecordId,
  ResourceName,
  Sequence,
  Time,
} from '../plumbing/models.js';
import { operationsOf } from '../plumbing/operations.js';
import { textOf } from '../plumbing/text-portions.js';

const SearchQuery = listQuery({
  resource: ResourceName.exactOptional().describe('One list; all lists of the catalogue unless given.'),
  q: RecordId.transform((text) => text.trim())
    .exactOptional()
    .describe(
      'An id, the beginning of an id, or words: each must be part of a text or number of the record, without case and diacritics. Without q: every record, by id.',
    ),
});

const Label = z.string().describe('What a person knows the record by: its name, its title, or else its id.');

const FoundRecordModel = z
  .object({
    resource: z.string(),
    id: z.string(),
    label: Label,
    data: z.unknown().describe('The record as the service sent it, after the privacy rules.'),
  })
  .meta({ id: 'FoundRecord', description: 'A living record of the mirror.' });
export type FoundRecordModel = z.output<typeof FoundRecordModel>;

const RecordQuery = queryOf({
  resource: ResourceName,
  id: RecordId,
  before: z
    .string()
    .regex(/^\d{1,18}$/, 'must be the next_before of an earlier answer')
    .exactOptional()
    .describe('next_before of the previous answer: older versions.'),
  limit: limit(20, 100).describe('Versions of the history.'),
});

const Value = z.string().describe('JSON text, so that numbers keep every digit.');

const Version = z.object({
  seq: Sequence,
  op: z.enum(['insert', 'update', 'delete', 'restore']),
  changed_at: Time,
  run_id: z.string().nullable(),
  kept: z.boolean().describe('Whether the feed still has this version and the one before; if not, `changes` is empty.'),
  changes: z.array(z.object({ path: z.string(), before: Value.optional(), after: Value.optional() })),
});
export type VersionModel = z.output<typeof Version>;

const RecordModel = z
  .object({
    environment: EnvironmentName,
    company_id: z.string(),
    company_name: CompanyName,
    resource: z.string(),
    id: z.string(),
    label: Label,
    state: z
      .enum(['living', 'deleted', 'unknown'])
      .describe('unknown: the mirror has no such row. The history may still have versions of it.'),
    forgotten: z.boolean().describe('Whether the record was forgotten and is kept out.'),
    text: Value.nullable().describe('The record as JSON text with a line for each member; null if the state is unknown.'),
    members: z.array(z.object({ path: z.string().describe('A dot path.'), value: Value })),
    first_seen_at: Time.nullable(),
    changed_at: Time.nullable(),
    deleted_at: Time.nullable(),
    list: z.object({
      records: Count.describe('Living records of the list.'),
      last_verified_at: Time.nullable().describe('The list was complete as of this time.'),
      last_run_id: z.string().nullable(),
    }),
    children: z.array(z.object({ resource: z.string(), records: Count })).describe('Rows of child lists that belong to it.'),
    similar: z
      .array(z.string())
      .describe('If the state is unknown: ids that differ only in letter case or in the spaces around them.'),
    history: z.array(Version).describe('Newest first.'),
    next_before: Sequence.nullable().describe('Where older versions go on; null where the feed has none.'),
  })
  .meta({ id: 'Record', description: 'One record: its present text, its state and its history.' });
export type RecordModel = z.output<typeof RecordModel>;

const { operator } = operationsOf('companies');

const PROBLEMS = ['company_not_found', 'unknown_resource', 'overloaded'] as const;

/** Finds records and shows one. Every call is audited: who looked into which list. The audit never says for whom. */
export function recordRoutes({
  db,
  clock,
  largeResponses,
  ...deps
}: LargeListDependencies & ForgetDependencies & { readonly clock: Pick<Clock, 'monotonic'> }): FastifyPluginAsyncZod {
  const { catalogue } = deps;

  return async (api) => {
    api.get(
      '/companies/:environment/:company_id/records',
      operator('findRecords', 'Find records by id or by a text in them', {
        description:
          'Living records: first the one with this id, then ids that begin with it, then records with these words. A page ends at limit, at 8 MB, or after some seconds of searching: while next_cursor is given, more may follow, even after an empty page. Every call is audited, without the text.',
        params: CompanyParams,
        querystring: SearchQuery,
        response: { 200: pageOf(FoundRecordModel) },
        problems: PROBLEMS,
      }),
      async ({ caller, params: company, query: { resource, q: text, limit: most, cursor } }, reply) => {
        const details = { ...(resource !== undefined && { resource }), by_text: text !== undefined };
        const { rows, nextCursor = null } = await audited(
          db,
          { by: caller, action: 'record.search', company, details },
          async () => {
            const resources = await listsOf(company, resource);
            return largeResponses.read(
              reply,
              (mostBytes) => searchRecords({ db, clock }, { ...company, resources, text, limit: most, cursor, mostBytes }),
              (page) => page.rows.reduce((bytes, row) => bytes + sizeOf(row), 0),
            );
          },
        );
        // The records are JSON already. Parsing and serializing them again would lose digits of numbers.
        reply.serializer((json: string) => json);
        reply.type('application/json; charset=utf-8');
        const after = `],"next_cursor":${JSON.stringify(nextCursor)}}`;
        return reply.send(textOf({ rows, sizeOf, present: presentFound, before: '{"data":[', between: ',', after }) as never);
      },
    );

    api.get(
      '/companies/:environment/:company_id/record',
      operator('showRecord', 'Show one record and its history', {
        description: 'The record may be living, deleted, forgotten or unknown. Every call is audited, without the id.',
        params: CompanyParams,
        querystring: RecordQuery,
        response: { 200: RecordModel },
        problems: PROBLEMS,
      }),
      async ({ caller, params: company, query }, reply) => {
        const { resource } = query;
        return audited(db, { by: caller, action: 'record.read', company, details: { resource } }, async () => {
          await listsOf(company, resource);
          await stampChanges(db);
          const versions = await largeResponses.read(
            reply,
            (mostBytes) => readNewestChanges(db, { ...company, ...query, limit: query.limit + 1, mostBytes }),
            (page) => page.rows.reduce((bytes, row) => bytes + (row.data?.length ?? 0), 0),
          );
          const [record] = await withCompanyNames(db, [await presentRecord(company, query)]);
          return { ...record!, ...presentHistory(versions, query.limit) };
        });
      },
    );
  };

  /** The lists that a call means. Throws `company_not_found`, `unknown_resource`. */
  async function listsOf(company: CompanyKey, resource: string | undefined): Promise<string[]> {
    const known = catalogue.endpoints.map((each) => each.resource);
    if (resource !== undefined && !known.includes(resource))
      throw new MusterError('unknown_resource', `The catalogue has no list ${resource}: it has ${known.join(', ')}.`);
    if (!(await findConnection(db, company))) throw companyNotFound(company);
    return resource === undefined ? known : [resource];
  }

  async function presentRecord(company: CompanyKey, { resource, id }: { readonly resource: string; readonly id: string }) {
    const key = { ...company, resource };
    const [row, list, forgotten] = [
      await readStoredRecord(db, key, id),
      await findList(db.prisma, key),
      await isForgotten(key, id),
    ];
    const children = catalogue.endpoints.filter(({ parent }) => parent === resource);
    const counted = await Promise.all(
      children.map(async (child) => ({
        resource: child.resource,
        records: await countChildren(db, { ...company, resource: child.resource }, id),
      })),
    );
    return {
      environment: company.environment,
      company_id: company.companyId,
      resource,
      id,
      label: (row && labelOf(row.data)) ?? id,
      state: row === undefined ? ('unknown' as const) : row.deletedAt === null ? ('living' as const) : ('deleted' as const),
      forgotten,
      text: row?.pretty ?? null,
      members: row ? membersOf(row.data) : [],
      first_seen_at: presentTime(row?.firstSeenAt),
      changed_at: presentTime(row?.changedAt),
      deleted_at: presentTime(row?.deletedAt),
      list: {
        records: list?.records ?? 0,
        last_verified_at: presentTime(list?.lastVerifiedAt),
        last_run_id: list?.lastRunId ?? null,
      },
      children: counted,
      similar: row === undefined ? await findSimilarIds(db, key, id) : [],
    };
  }

  /** A key that cannot be read does not keep the record from being seen. */
  async function isForgotten(list: CompanyKey & { readonly resource: string }, id: string): Promise<boolean> {
    try {
      return await isSuppressed(db, deps, { list, id });
    } catch (error) {
      if (isMusterError(error, 'mark_key_unreadable')) return false;
      throw error;
    }
  }
}

/** `versions` has one more than is shown, so that the oldest one shown can be compared. */
function presentHistory(
  { rows, nextBefore }: { readonly rows: readonly ChangeRow[]; readonly nextBefore: string | null },
  most: number,
) {
  const shown = rows.slice(0, most);
  const isMore = rows.length > most || nextBefore !== null;
  return {
    history: shown.map((row, n) => presentVersion(row, rows[n + 1])),
    next_before: isMore && shown.length > 0 ? Number(shown.at(-1)!.seq) : null,
  };
}

function presentVersion({ seq, op, changedAt, runId, data }: ChangeRow, before: ChangeRow | undefined): VersionModel {
  const isCompared = op === 'update' || op === 'restore';
  const isKept = isCompared ? typeof data === 'string' && typeof before?.data === 'string' : op === 'delete' || data !== null;
  return {
    seq: Number(seq),
    op: op as VersionModel['op'],
    changed_at: changedAt.toISOString(),
    run_id: runId,
    kept: isKept,
    changes: isCompared && isKept ? changedMembers(before!.data!, data!) : [],
  };
}

function labelOf(data: string): string | undefined {
  const record = parseObject(data);
  return record && labelOfRecord(record);
}

function sizeOf({ id, data }: FoundRecord): number {
  return id.length + data.length;
}

/** The JSON text of a `FoundRecord`. */
function presentFound({ resource, id, data }: FoundRecord): string {
  return `${JSON.stringify({ resource, id, label: labelOf(data) ?? id }).slice(0, -1)},"data":${data}}`;
}
