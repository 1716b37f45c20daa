import { z } from 'zod';

// Parts that the schemas of the paging styles share.

/** One message for each member, with "is missing" in front where nothing stands. */
export function must(rule: string) {
  return {
    error: (issue: { input?: unknown }) => (issue.input === undefined ? `is missing; must be ${rule}` : `must be ${rule}`),
  };
}

/** The value of a member whose own name ends in `Name`, which tells the catalogue which parameters the pager sets. */
export const PARAMETER_NAME = z
  .string(must('the name of a parameter'))
  .regex(/^[^\s&=#?]{1,64}$/, must('the name of a parameter, without spaces and none of & = # ?'));

const sizeRule = must('a whole number from 1 to 10000');
/** Records a page. */
export const PAGE_SIZE = z.number(sizeRule).int(sizeRule).min(1, sizeRule).max(10_000, sizeRule);

/** The number of a list's first page or position. */
export function firstNumber(of: 'page' | 'record') {
  return z.union([z.literal(0), z.literal(1)], must(`0 or 1, the number of the first ${of}`));
}

/** Where the parameters stand: by the method unless said. */
export const PLACE = z.enum(['query', 'body'], must('query or body'));

/** A schema's output once it is known where the parameters stand. */
export type Placed<T> = Omit<T, 'in'> & { readonly in: 'query' | 'body' };

export function differ(a: string, b: string) {
  return { error: `must differ from ${a}`, path: [b] };
}
