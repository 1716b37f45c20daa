import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { MusterError } from '../../core/errors.js';
import { type DiffRow, findRunBefore, readDiff } from '../../db/tables/run-diff.js';
import type { RunRow } from '../../db/tables/runs.js';
import type { Runs } from '../../runs/runs.js';
import { mayAct, SEES_VALUES } from '../plumbing/caller.js';
import type { LargeListDependencies } from '../plumbing/large-responses.js';
import { IdParams, listQuery, ResourceName } from '../plumbing/models.js';
import { operationsOf } from '../plumbing/operations.js';
import { textOf } from '../plumbing/text-portions.js';

const DiffQuery = listQuery({
  resource: ResourceName.exactOptional().describe('Optional if the run has one list.'),
  against: z
    .uuid('must be the id of a run')
    .transform((id) => id.toLowerCase())
    .exactOptional()
    .describe('An earlier run of the company. Default: the previous run that walked the list.'),
  values: z
    .enum(['json', 'text'])
    .exactOptional()
    .describe('With `text`, before and after are JSON texts of the values, for programs that would round numbers.'),
});

const DiffItem = z
  .object({
    id: z.string(),
    op: z.enum(['insert', 'update', 'delete', 'restore']),
    kept: z.boolean().describe('Whether the feed still has both versions; if not, `changes` is empty.'),
    changes: z.array(
      z.object({
        path: z.string().describe('The member, as a dot path.'),
        before: z.unknown().optional().describe('Absent if the record had no such member.'),
        after: z.unknown().optional().describe('Absent if the record no longer has such a member.'),
      }),
    ),
  })
  .meta({ id: 'RecordDiff', description: 'What changed in one record between two runs, member by member.' });
export type DiffItemModel = z.output<typeof DiffItem>;

const Diff = z
  .object({
    run: z.string(),
    against: z.string().nullable().describe('Null: the list as it was before its first run.'),
    resource: z.string(),
    data: z.array(DiffItem),
    values_hidden: z
      .boolean()
      .optional()
      .describe('Whether before and after are left out, as for viewers: values of records are for operators and admins.'),
    next_cursor: z.string().nullable(),
  })
  .meta({ id: 'Diff', description: 'What changed in a list between two runs.' });
export type DiffModel = z.output<typeof Diff>;

const { viewer } = operationsOf('runs');

export function runDiffRoutes({
  db,
  runs,
  largeResponses,
}: LargeListDependencies & { readonly runs: Runs }): FastifyPluginAsyncZod {
  return async (api) => {
    api.get(
      '/runs/:id/diff',
      viewer('diffRuns', 'Show what changed in a list between two runs', {
        description:
          'Records in the order of ids, each member by member. A record that changed and changed back is left out, and a page ends at 8 MB: a page may be shorter than `limit`, or empty, although more follow.',
        params: IdParams,
        querystring: DiffQuery,
        response: { 200: Diff },
        problems: ['run_not_found', 'unknown_resource', 'changes_expired', 'overloaded'],
      }),
      async ({ caller, params: { id }, query: { against: againstId, values = 'json', limit, cursor, ...query } }, reply) => {
        const run = await syncRun(runs, id);
        const resource = resourceOf(run, query.resource);
        const key = { environment: run.environment, companyId: run.companyId };
        const against =
          againstId === undefined
            ? await findRunBefore(db, { ...key, resource, seq: run.seq })
            : await earlierRun(run, againstId);
        const { rows, nextCursor } = await largeResponses.read(
          reply,
          (mostBytes) => readDiff(db, { ...key, resource, run, against, values, limit, cursor, mostBytes }),
          (page) => page.rows.reduce((bytes, row) => bytes + sizeOf(row), 0),
        );
        const isHidden = !mayAct(caller, SEES_VALUES);
        const around = JSON.stringify({
          run: run.id,
          against: against?.id ?? null,
          resource,
          ...(isHidden && { values_hidden: true }),
          next_cursor: nextCursor ?? null,
        });
        // The changes are JSON already. Parsing and serializing them again would lose digits of numbers.
        reply.serializer((text: string) => text);
        reply.type('application/json; charset=utf-8');
        const before = `${around.slice(0, -1)},"data":[`;
        const present = isHidden ? presentHidden : presentItem;
        return reply.send(textOf({ rows, sizeOf, present, before, between: ',', after: ']}' }) as never);
      },
    );
  };

  async function earlierRun(run: RunRow, id: string): Promise<RunRow> {
    const earlier = await syncRun(runs, id);
    const isOfCompany = earlier.companyId === run.companyId && earlier.environment === run.environment;
    if (isOfCompany && earlier.seq < run.seq) return earlier;
    throw new MusterError('invalid_request', `The run ${id} is not an earlier run of the same company: name one that is.`);
  }
}

function sizeOf({ id, changes }: DiffRow): number {
  return id.length + changes.length;
}

function presentItem({ id, op, isKept, changes }: DiffRow): string {
  return `${JSON.stringify({ id, op, kept: isKept }).slice(0, -1)},"changes":${changes}}`;
}

/** A viewer learns which members changed, and none of their values. */
function presentHidden({ changes, ...row }: DiffRow): string {
  const paths = (JSON.parse(changes) as { readonly path: string }[]).map(({ path }) => ({ path }));
  return presentItem({ ...row, changes: JSON.stringify(paths) });
}

async function syncRun(runs: Runs, id: string): Promise<RunRow> {
  const run = await runs.find(id);
  if (!run) throw new MusterError('run_not_found', `There is no run ${id}: GET /api/runs lists them.`);
  if (run.kind !== 'sync')
    throw new MusterError('invalid_request', `The run ${id} verifies and changes nothing: name a run of kind sync.`);
  return run;
}

function resourceOf({ walks }: RunRow, wanted: string | undefined): string {
  const names = walks.map(({ resource }) => resource);
  if (wanted === undefined && names.length === 1) return names[0]!;
  if (wanted === undefined) throw new MusterError('invalid_request', `Name the list with resource: ${names.join(', ')}.`);
  if (names.includes(wanted)) return wanted;
  throw new MusterError('unknown_resource', `The run walks no ${wanted}. It walks: ${names.join(', ')}.`);
}
