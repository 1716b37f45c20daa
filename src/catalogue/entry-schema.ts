import { z } from 'zod';
import { CRON_RULE, isCron } from '../core/cron.js';
import { faultOfCandidate, idCandidate } from '../pagers/id-candidate.js';
import { PAGER_STYLES } from '../pagers/registry.js';
import { must } from '../pagers/spec.js';
import { RULE_KINDS } from '../privacy/rules.js';
import { COLUMNS_SCHEMA } from './declared-columns.js';

const ID_CANDIDATE = z.unknown().transform((written, context) => {
  const fault = faultOfCandidate(written);
  if (fault === undefined) return idCandidate(written as string | string[]);
  context.addIssue({ code: 'custom', message: fault });
  return z.NEVER;
});
const share = must('a number from 0 to 1');
const levels = must('a whole number from 1 to 4');
const rows = must('a whole number of 0 or more');

export const DELETE_GUARD_SCHEMA = z.strictObject(
  { share: z.number(share).min(0, share).max(1, share).default(0.2), rows: z.number(rows).int(rows).min(0, rows).default(10) },
  must('a map with share and rows'),
);

/** A path begins with only one slash: `//host/…` would name another host, and the access token would be sent there. */
const PATH = /^\/(?![/\\])[^\s?#\\]*$/;

/** The name of a base, in capitals, is part of a variable's name. */
export const BASE_SCHEMA = z
  .string(must('the name of a base'))
  .regex(/^[a-z][a-z0-9_]{0,40}$/, must('a name of a-z, 0-9 and _, a letter first'));

type StyleSchema = (typeof PAGER_STYLES)[keyof typeof PAGER_STYLES]['schema'];
const STYLE_SCHEMAS = Object.values(PAGER_STYLES).map(({ schema }) => schema) as unknown as readonly [
  StyleSchema,
  ...StyleSchema[],
];
const STYLES = new Intl.ListFormat('en-GB', { type: 'disjunction' });

const constant = must('a text, a number, true or false');
const CONSTANTS = z.record(
  z.string(),
  z.union([z.string(), z.number(), z.boolean()], constant).transform(String),
  must('a map of parameters'),
);

const dotPath = must('a dot path, or none');
const DOT_PATH = z.string(dotPath).regex(/^[^.\s]+(\.[^.\s]+)*$/, dotPath);
const place = must('a dot path, header NAME, or none');
const PLACE_OF_VALUE = z.string(place).regex(/^(header [\w!#$%&'*+.^`|~-]+|[^.\s]+(\.[^.\s]+)*)$/, place);
const nextPlace = must("a dot path, header NAME, or last MEMBER of the page's last record");

const cron = must(CRON_RULE);
const CRON = z.string(cron).refine(isCron, cron);

export const FIELDS_SCHEMA = z.strictObject(
  {
    data: DOT_PATH.optional(),
    total: PLACE_OF_VALUE.optional(),
    hasNext: PLACE_OF_VALUE.optional(),
    next: z
      .string(nextPlace)
      .regex(/^((header|last) \S+|[^.\s]+(\.[^.\s]+)*)$/, nextPlace)
      .optional(),
    ignore: z.array(PLACE_OF_VALUE, must('a list of dot paths, or header NAME')).optional(),
  },
  must('a map with data, total, hasNext, next or ignore'),
);

/** The entry of one list in a catalogue file. Relations between members are checked in validate.ts. */
export const ENTRY_SCHEMA = z.strictObject(
  {
    method: z.enum(['GET', 'POST'], must('GET or POST')),
    path: z.string(must('a path')).regex(PATH, must('a path that begins with one / and has no spaces, ? or #')),
    base: BASE_SCHEMA.optional(),
    query: CONSTANTS.optional(),
    body: z.record(z.string(), z.unknown(), must('a map of constants')).optional(),
    pager: z.discriminatedUnion('style', STYLE_SCHEMAS, {
      error: (issue) =>
        issue.code === 'invalid_union'
          ? `must be ${STYLES.format(Object.keys(PAGER_STYLES))}`
          : 'must be a map with style and size',
    }),
    id: z
      .array(ID_CANDIDATE, must('a list of record members'))
      .min(1, must('a list of one record member or more'))
      .default(['uid', 'id']),
    envelope: DOT_PATH.optional(),
    fields: FIELDS_SCHEMA.optional(),
    order: z.enum(['stable', 'unstable'], must('stable or unstable')).default('stable'),
    etag: z.enum(['strong', 'weak', 'ignore'], must('strong, weak or ignore')).default('strong'),
    parent: z.string(must('the name of another list')).optional(),
    optional: z.boolean(must('true or false')).optional(),
    schedule: CRON.optional(),
    flatten: z.number(levels).int(levels).min(1, levels).max(4, levels).optional(),
    privacy: z.record(z.string(), z.enum(RULE_KINDS, must('drop, mask or hash')), must('a map of dot paths')).optional(),
    columns: COLUMNS_SCHEMA.optional(),
    references: z.record(z.string(), z.string(must('the name of a list')), must('a map of dot paths to lists')).optional(),
    deleteGuard: DELETE_GUARD_SCHEMA.prefault({}),
  },
  must('a map with method, path and pager'),
);

export type CatalogueEntry = z.output<typeof ENTRY_SCHEMA>;
