import { z } from 'zod';

/** One message for each member, with "is missing" in front where nothing stands. */
function must(rule: string) {
  return {
    error: (issue: { input?: unknown }) => (issue.input === undefined ? `is missing; must be ${rule}` : `must be ${rule}`),
  };
}

const parameterName = z
  .string(must('the name of a parameter'))
  .regex(/^[^\s&=#?]{1,64}$/, must('the name of a parameter, without spaces and none of & = # ?'));
const sizeRule = must('a whole number from 1 to 10000');
const size = z.number(sizeRule).int(sizeRule).min(1, sizeRule).max(10_000, sizeRule);
const place = z.enum(['query', 'body'], must('query or body'));

const offsetNames = (skip: string, take: string) => ({
  skipName: parameterName.default(skip),
  takeName: parameterName.default(take),
});

const differ = (a: string, b: string) => ({ error: `must differ from ${a}`, path: [b] });

export const PAGER_SCHEMAS = {
  'skip-take': z
    .strictObject({ style: z.literal('skip-take'), in: place.optional(), ...offsetNames('skip', 'take'), size })
    .refine((pager) => pager.skipName !== pager.takeName, differ('skipName', 'takeName')),
  odata: z
    .strictObject({
      style: z.literal('odata'),
      in: z.literal('query', { error: 'must be query: OData has its parameters nowhere else' }).default('query'),
      ...offsetNames('$skip', '$top'),
      size,
    })
    .refine((pager) => pager.skipName !== pager.takeName, differ('skipName', 'takeName')),
  continuation: z
    .strictObject({
      style: z.literal('continuation'),
      in: place.optional(),
      tokenName: parameterName.default('continuationToken'),
      sizeName: parameterName.default('pageSize'),
      size,
    })
    .refine((pager) => pager.tokenName !== pager.sizeName, differ('tokenName', 'sizeName')),
};

const idCandidate = z.string(must('the name of a record member')).min(1, must('the name of a record member'));
const share = must('a number from 0 to 1');
const rows = must('a whole number of 0 or more');

export const DELETE_GUARD_SCHEMA = z.strictObject(
  { share: z.number(share).min(0, share).max(1, share).default(0.2), rows: z.number(rows).int(rows).min(0, rows).default(10) },
  must('a map with share and rows'),
);

/** The path begins with one slash only: `//host/…` would name another host, and the access token would go there. */
const PATH = /^\/(?![/\\])[^\s?#\\]*$/;

/** What a catalogue file says of one list. What one member means for another is checked in validate.ts. */
export const ENTRY_SCHEMA = z.strictObject(
  {
    method: z.enum(['GET', 'POST'], must('GET or POST')),
    path: z.string(must('a path')).regex(PATH, must('a path that begins with one / and has no spaces, ? or #')),
    pager: z.discriminatedUnion('style', [PAGER_SCHEMAS['skip-take'], PAGER_SCHEMAS.odata, PAGER_SCHEMAS.continuation], {
      error: (issue) =>
        issue.code === 'invalid_union' ? 'must be skip-take, odata or continuation' : 'must be a map with style and size',
    }),
    id: z
      .array(idCandidate, must('a list of record members'))
      .min(1, must('a list of one record member or more'))
      .default(['uid', 'id']),
    envelope: z
      .string(must('a dot path, or none'))
      .regex(/^[^.\s]+(\.[^.\s]+)*$/, must('a dot path, or none'))
      .optional(),
    order: z.enum(['stable', 'unstable'], must('stable or unstable')).default('stable'),
    etag: z.enum(['strong', 'weak', 'ignore'], must('strong, weak or ignore')).default('strong'),
    parent: z.string(must('the name of another list')).optional(),
    deleteGuard: DELETE_GUARD_SCHEMA.prefault({}),
  },
  must('a map with method, path and pager'),
);

export type CatalogueEntry = z.output<typeof ENTRY_SCHEMA>;
