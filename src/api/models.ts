import { z } from 'zod';
import { ENVIRONMENTS, parseCompanyId } from '../core/company.js';

// The models of several route groups: scalars, parameters of paths and queries, pages, and problems. Models are the only definition of what
// the API takes and gives: inputs are checked against them, answers are typed and described by them, and presenters map rows to them.

export const EnvironmentName = z.enum(ENVIRONMENTS);
export const CompanyId = z
  .string()
  .refine((text) => parseCompanyId(text) !== undefined, 'must be a GUID, for example 5f0c1d3a-8a52-4c0e-9d1b-2f6f0f3b7a10')
  .transform((text) => text.trim().toLowerCase())
  .meta({ format: 'uuid', description: 'A GUID; compared case-insensitively, kept in lower case.' });
/** The form of every name that a catalogue may give. Without it a NUL or a lone surrogate would reach PostgreSQL, which refuses both. */
export const ResourceName = z.string().regex(/^[a-z][a-z0-9_]*$/, 'must be the name of a resource, for example employees');
/** ISO 8601 in UTC. */
export const Time = z.string().meta({ format: 'date-time' });
export const Count = z.int().min(0);
/** The error that ended a run or a walk; `code` is one of docs/errors.md. */
export const Failure = z.object({ code: z.string(), message: z.string() }).readonly();

export const CompanyParams = z.object({ environment: EnvironmentName, company_id: CompanyId });
export const IdParams = z.object({ id: z.uuid('must be a GUID').transform((id) => id.toLowerCase()) });

/** The model of a query. A parameter without a value counts as absent: addresses are built by filling in a template. */
export function queryOf<T extends z.ZodRawShape>(shape: T) {
  return z.preprocess(withoutEmpty, z.strictObject(shape));
}

function withoutEmpty(query: unknown): unknown {
  if (typeof query !== 'object' || query === null) return query;
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value !== ''));
}

/** The length of a page: `standard` unless given. More than `most` counts as `most`, since the answer says where the list goes on. */
export function limit(standard: number, most: number) {
  return z
    .string()
    .refine((text) => /^0*[1-9]\d*$/.test(text), 'must be a whole number above 0')
    .transform((text) => Math.min(Number(text), most))
    .default(standard)
    .meta({ type: 'integer', minimum: 1, description: `${standard} unless said; more than ${most} counts as ${most}.` });
}

/** The query of a list that is given page by page. */
export function listQuery<T extends z.ZodRawShape>(filters: T) {
  const cursor = z.string().exactOptional().meta({ description: 'next_cursor of the previous answer.' });
  return queryOf({ ...filters, limit: limit(100, 500), cursor });
}

/** A page of a list; a `next_cursor` of null marks the last one. */
export function pageOf<T extends z.ZodType>(item: T) {
  return z.object({ data: z.array(item), next_cursor: z.string().nullable() });
}

/** The answer for a page of rows. */
export function presentPage<Row, Model>(
  { data, nextCursor }: { readonly data: readonly Row[]; readonly nextCursor?: string },
  present: (row: Row) => Model,
): { data: Model[]; next_cursor: string | null } {
  return { data: data.map(present), next_cursor: nextCursor ?? null };
}

export function presentTime(time: Date | null | undefined): string | null {
  return time?.toISOString() ?? null;
}

const Problem = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: z.string().meta({ description: 'Stable; docs/errors.md says what each means and what to do.' }),
    errors: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
  })
  .meta({ id: 'Problem', description: 'RFC 9457 problem details.' });

/** The answers of a route: `right` by status, and problem+json for every other status. */
export function answers<T extends Record<number, z.ZodType>>(right: T) {
  return {
    ...right,
    default: { description: 'A problem', content: { 'application/problem+json': { schema: Problem } } },
  };
}
