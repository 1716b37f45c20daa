import { z } from 'zod';
import { type CompanyKey, ENVIRONMENTS, parseCompanyId } from '../../core/company.js';
import { isDay } from '../../core/days.js';
import type { Page } from '../../db/statements/cursor.js';

// Models that several routes share: scalars, parameters of paths and queries, and pages. A model is the only definition of an input or a response:
// inputs are checked against it, responses are typed and described by it, and presenters map rows to it.

export const EnvironmentName = z.enum(ENVIRONMENTS);
export const CompanyId = z
  .string()
  .refine((text) => parseCompanyId(text) !== undefined, 'must be a GUID, for example 5f0c1d3a-8a52-4c0e-9d1b-2f6f0f3b7a10')
  .transform((text) => text.trim().toLowerCase())
  .meta({ format: 'uuid', description: 'A GUID; compared case-insensitively, kept in lower case.' });
/** A number of the feed: 64 bits. Its 18 digits are more than a JavaScript number holds. */
export const Sequence = z.number().meta({ type: 'integer', format: 'int64', minimum: 0 });
/** A number of the feed in a query; reading continues after it. */
export const SequenceAfter = z
  .string()
  .regex(/^\d{1,18}$/, 'must be the next_after of an earlier answer, or 0')
  .default('0');
/** The form of every name that a catalogue may give. Without it a NUL or a lone surrogate would reach PostgreSQL, which refuses both. */
export const ResourceName = z.string().regex(/^[a-z][a-z0-9_]*$/, 'must be the name of a resource, for example employees');
/** The id of a record, in a body or a query: any text that PostgreSQL takes. */
export const RecordId = z
  .string()
  .min(1, 'must not be empty')
  .max(2_000, 'is longer than any id')
  // oxlint-disable-next-line no-control-regex
  .regex(/^[^\u0000]*$/, 'holds a NUL, which no id has');
/** ISO 8601 in UTC. */
export const Time = z.string().meta({ format: 'date-time' });
export const Count = z.int().min(0);
/** The error that ended a run or a walk; `code` is one of docs/errors.md. */
export const Failure = z.object({ code: z.string(), message: z.string() }).readonly();

/** The company of an address, as its key. */
export const CompanyParams = z
  .object({ environment: EnvironmentName, company_id: CompanyId })
  .transform(({ environment, company_id }): CompanyKey => ({ environment, companyId: company_id }));
export const IdParams = z.object({ id: z.uuid('must be a GUID').transform((id) => id.toLowerCase()) });

/** A moment as a person or a program may write it; PostgreSQL takes no year of more digits. */
export const Moment = z.iso
  .datetime({ offset: true, error: 'must be a time with its zone, for example 2026-11-24T00:00:00Z' })
  .transform((text) => new Date(text))
  .refine((time) => time.getTime() >= 0, 'must be a time after 1970, for example 2026-11-24T00:00:00Z')
  .meta({ type: 'string', format: 'date-time' });

/** A day in the time zone of the schedule; `boundsOfDay` gives its moments. */
export const Day = z
  .string()
  .refine(isDay, 'must be a day, for example 2026-11-24')
  .meta({ format: 'date', description: 'A day in the time zone of the schedule (SYNC_TIMEZONE), such as 2026-11-24.' });

/** A part of a name, for a search. */
export const SearchText = z
  .string()
  .regex(/^[^\p{Cc}\p{Cs}]{1,100}$/u, 'must be 1 to 100 characters')
  .transform((text) => text.trim());

/** The direction of `sort`. */
export const SortOrder = z.enum(['asc', 'desc']).exactOptional().describe('The direction of `sort`: `asc` unless given.');
/** The companies of a list, by name; `companiesOf` finds them. */
const CompanySearch = SearchText.exactOptional().describe(
  'Only of companies whose name has this part, in any letter case and with or without diacritics, or whose company_id begins with it.',
);
/** The filters of lists that are of companies; `filterOf` gives their values. */
export const CompanyFilters = { environment: EnvironmentName.exactOptional(), company_id: CompanyId.exactOptional() };
/** These filters and a search by name; `companyFilterOf` gives their values. */
export const CompanySearchFilters = { ...CompanyFilters, company: CompanySearch };

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
  const cursor = z.string().exactOptional().describe('next_cursor or previous_cursor of another answer of the list.');
  return queryOf({ ...filters, limit: limit(100, 500), cursor });
}

/** The filter of a list as the database takes it. */
export function filterOf<T extends { readonly company_id?: string }>({ company_id, ...filter }: T) {
  return { ...filter, ...(company_id && { companyId: company_id }) };
}

/** A page of a list; a `next_cursor` of null marks the last one. */
export function pageOf<T extends z.ZodType>(item: T) {
  return z.object({
    data: z.array(item),
    next_cursor: z.string().nullable(),
    previous_cursor: z.string().exactOptional().describe('Absent on the first page, and where the list is only read forward.'),
  });
}

/** A page of a list whose items are counted. */
export function countedPageOf<T extends z.ZodType>(item: T) {
  return pageOf(item).extend({ total: Count.describe('How many items match, on all pages.') });
}

export interface PresentedPage<Model> {
  data: Model[];
  next_cursor: string | null;
  previous_cursor?: string;
}

export function presentPage<Row, Model>(
  { data, nextCursor, previousCursor }: Page<Row>,
  present: (row: Row) => Model,
): PresentedPage<Model> {
  return {
    data: data.map(present),
    next_cursor: nextCursor ?? null,
    ...(previousCursor !== undefined && { previous_cursor: previousCursor }),
  };
}

export function presentTime(time: Date | null | undefined): string | null {
  return time?.toISOString() ?? null;
}
