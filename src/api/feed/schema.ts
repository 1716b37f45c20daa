import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Catalogue } from '../../catalogue/endpoint.js';
import { MusterError } from '../../core/errors.js';
import type { Database } from '../../db/connection/database.js';
import { type ArrayView, readArrays } from '../../db/tables/schema-arrays.js';
import { askForRebuild, COLUMN_TYPES, type ColumnRow, listColumns } from '../../db/tables/schema-columns.js';
import { catalogueLine, misfitKinds } from '../../warehouse/catalogue-line.js';
import { textColumn } from '../../warehouse/column-names.js';
import { audited } from '../plumbing/audit.js';
import { Count, listQuery, pageOf, presentPage, ResourceName, Time } from '../plumbing/models.js';
import { operationsOf } from '../plumbing/operations.js';

const SchemaColumn = z
  .object({
    resource: z.string(),
    view: z.string().describe('The view in schema warehouse: the name of the resource, or that of a view of array elements.'),
    column: z.string().describe('Its name in the view. It never changes.'),
    path: z
      .array(z.string())
      .readonly()
      .describe(
        'The key in the record, or in the element of the array, after the keys of the objects around it. A key may be any text.',
      ),
    type: z.enum(COLUMN_TYPES),
    first_seen_at: Time.describe('Time of the first change with the key.'),
    last_seen_at: Time.describe('Time of the last change with the key.'),
    values: Count.describe('Values other than null in the counted changes.'),
    nulls: Count,
    misfits: Count.describe('Values that do not fit the type: the column has null, and text_column has the value.'),
    text_column: z.string().nullable().describe('The column for values that do not fit; null until one came.'),
    declared: z.string().nullable().describe('The type that the catalogue declares for the key; null if the type was inferred.'),
    misfit_kinds: z.record(z.string(), Count).describe('How many values of which kinds do not fit.'),
    twins: z
      .array(z.object({ column: z.string(), type: z.enum(COLUMN_TYPES) }))
      .describe('Further columns of the same key: with the type that all values have had since, or that the catalogue declares.'),
    catalogue: z
      .string()
      .nullable()
      .describe('The line for the entry in the catalogue that declares a type which fits; null if the declared type does.'),
  })
  .meta({ id: 'SchemaColumn', description: 'A column of a typed view.' });
export type SchemaColumnModel = z.output<typeof SchemaColumn>;

const Rebuild = z.strictObject({ resource: ResourceName.exactOptional() }).nullish();
const Rebuilding = z.object({ resources: z.array(z.string()) });
export type RebuildModel = z.output<typeof Rebuilding>;

const { viewer, operator } = operationsOf('schema');

export function schemaRoutes({ db, catalogue }: { readonly db: Database; readonly catalogue: Catalogue }): FastifyPluginAsyncZod {
  return async (api) => {
    api.get(
      '/schema',
      viewer('listColumns', 'List the columns of the typed views', {
        description: 'By view, then in the order in which they were added.',
        querystring: listQuery({ resource: ResourceName.exactOptional() }),
        response: { 200: pageOf(SchemaColumn) },
      }),
      async ({ query }) => {
        const page = await listColumns(db, query);
        const arrays = await readArrays(db.prisma, [...new Set(page.data.map(({ resource }) => resource))]);
        return presentPage(page, (row) => presentColumn(row, arrays));
      },
    );

    api.post(
      '/schema/rebuild',
      operator('rebuildSchema', 'Count the columns again', {
        description:
          'For one list or all: a worker counts in the living records of the mirror. Names, types and order of the columns stay.',
        body: Rebuild,
        response: { 202: Rebuilding },
        problems: ['unknown_resource'],
      }),
      async ({ caller, body }, reply) => {
        const resources = resourcesOf(catalogue, body?.resource);
        await audited(db, { by: caller, action: 'schema.rebuild', details: { resources } }, () =>
          askForRebuild(db.prisma, resources),
        );
        return reply.code(202).send({ resources });
      },
    );
  };
}

function resourcesOf({ endpoints }: Catalogue, resource: string | undefined): string[] {
  const all = endpoints.map((endpoint) => endpoint.resource);
  if (resource === undefined) return all;
  if (all.includes(resource)) return [resource];
  throw new MusterError('unknown_resource', `No such resource in the catalogue: ${resource}. There are: ${all.join(', ')}.`);
}

function presentColumn(row: ColumnRow, arrays: readonly ArrayView[]): SchemaColumnModel {
  const array = arrays.find(({ view }) => view === row.view);
  const {
    resource,
    view,
    name: column,
    path,
    type,
    declared,
    firstSeenAt,
    lastSeenAt,
    values,
    nulls,
    misfits,
    textPosition,
  } = row;
  return {
    resource,
    view,
    column,
    path,
    type,
    first_seen_at: firstSeenAt.toISOString(),
    last_seen_at: lastSeenAt.toISOString(),
    values,
    nulls,
    misfits,
    text_column: textPosition === null ? null : textColumn(column),
    declared,
    misfit_kinds: misfitKinds(row),
    twins: row.twins.map((twin) => ({ column: twin.name, type: twin.type })),
    catalogue: catalogueLine(row, array ? [...array.path, ...(array.innerPath ?? [])] : []),
  };
}
