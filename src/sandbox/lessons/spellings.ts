import { Refusal } from '../answer.js';
import { type FetchedPage, told, withHeader, withMembers, withTold } from './answered-page.js';
import { type Lesson, SEVERAL_PAGES } from './lesson.js';

const VERIFIED = 'The list is verified: Muster reads this spelling.';

type Change = (page: FetchedPage) => FetchedPage;
type Rest = Pick<Lesson, 'lists' | 'records' | 'entry'>;

function spelling(name: string, does: string, change: Change, rest: Rest = {}): Lesson {
  return { name, does, see: VERIFIED, ...rest, act: { kind: 'page', change } };
}

const EMPTY: Rest = { lists: ['employees', 'departments', 'absences', 'documents', 'contracts', 'shifts'], records: 'none' };

/** Other spellings of an empty list. */
const NO_RECORDS: readonly Lesson[] = [
  spelling(
    'data-null',
    'A list without records has null instead of an array.',
    (page) => withTold(page, 'records', 'null'),
    EMPTY,
  ),
  spelling(
    'data-missing',
    'A list without records lacks the member for them.',
    (page) => withTold(page, 'records', undefined),
    EMPTY,
  ),
  spelling('data-object', 'A list without records has {} instead of an array.', (page) => withTold(page, 'records', '{}'), EMPTY),
  spelling('no-content', 'The service answers 204 for a list without records.', (page) => ({ ...page, status: 204 }), EMPTY),
];

const TOTALLED: Rest = { lists: ['employees', 'departments', 'absences', 'contracts', 'shifts'] };
const IN_BODY: Rest = { lists: ['employees', 'absences', 'contracts', 'shifts'], records: SEVERAL_PAGES };
const IN_HEADER: Rest = { lists: ['notes'] };

const TOTALS: readonly Lesson[] = [
  spelling('total-text', 'The total is written as text: "7".', (page) => withTold(page, 'total', `"${page.total}"`), TOTALLED),
  ...(
    [
      ['minus', '-1'],
      ['null', 'null'],
      ['missing', undefined],
    ] as const
  ).map(([name, text]) =>
    spelling(
      `total-${name}`,
      `The first page has the total; on later pages it is ${text ?? 'missing'}.`,
      (page) => (page.isFirst ? page : withTold(page, 'total', text)),
      IN_BODY,
    ),
  ),
  spelling(
    'total-range',
    'Only Content-Range has the total: items 0-2/7.',
    (page) => withHeader(withTold(page, 'total', undefined), 'content-range', rangeOf(page)),
    { ...IN_HEADER, entry: 'fields: { data: none, total: header Content-Range }' },
  ),
  spelling(
    'total-twice',
    'The header of the total is sent twice, with the same value.',
    (page) => withHeader(page, 'x-total-count', [String(page.total), String(page.total)]),
    IN_HEADER,
  ),
];

/** RFC 9110, 14.4: an empty page has no range. */
function rangeOf({ position = 0, records, total }: FetchedPage): string {
  return records.length === 0 ? `items */${total}` : `items ${position}-${position + records.length - 1}/${total}`;
}

const CHAINED: Rest = { lists: ['documents', 'payslips'], records: SEVERAL_PAGES };

const MORE: readonly Lesson[] = [
  spelling(
    'more-text',
    'Whether a page follows is written as text: "true" and "false".',
    (page) => withTold(page, 'more', `"${!page.isLast}"`),
    CHAINED,
  ),
  spelling(
    'more-number',
    'Whether a page follows is written as 1 and 0.',
    (page) => withTold(page, 'more', page.isLast ? '0' : '1'),
    CHAINED,
  ),
  spelling(
    'more-missing',
    'The last page lacks the member that says true on every other page.',
    (page) => (page.isLast ? withTold(page, 'more', undefined) : page),
    CHAINED,
  ),
];

const LINKS: Rest = { lists: ['shifts'], records: SEVERAL_PAGES };
const NO_NEXT_PAGE = { false: 'false', zero: '0', minus: '-1', text: '"null"', array: '[]', object: '{}' };

const NEXT: readonly Lesson[] = [
  ...Object.entries(NO_NEXT_PAGE).map(([name, text]) =>
    spelling(
      `next-${name}`,
      `The last page has ${text} as its next page.`,
      (page) => (page.isLast ? withTold(page, 'next', text) : page),
      LINKS,
    ),
  ),
  spelling(
    'next-href',
    'The next page is an object: {"href": "…"}.',
    (page) => withTold(page, 'next', page.isLast ? undefined : `{"href":${told(page, 'next')}}`),
    LINKS,
  ),
];

const WITHOUT_TOTAL: Rest = {
  lists: ['employees', 'departments', 'absences'],
  entry: 'fields: { total: none }',
};

const PAGES: readonly Lesson[] = [
  spelling('status-203', 'Every page has status 203.', (page) => ({ ...page, status: 203 })),
  spelling('status-206', 'Every page has status 206.', (page) => ({ ...page, status: 206 })),
  ...[400, 404, 416].map((status) =>
    spelling(
      `after-end-${status}`,
      `There is no total, and a position after the last record gets ${status} in JSON.`,
      (page) => endedBy(status, page),
      WITHOUT_TOTAL,
    ),
  ),
];

function endedBy(status: number, page: FetchedPage): FetchedPage {
  const { position = 0, total } = page;
  if (position > 0 && position >= total) throw new Refusal(status, 'no_such_page', 'There is no record at this position.');
  return withMembers(withTold(page, 'total', undefined), { totalDisplayRecords: undefined });
}

/** Other spellings of the same fact. Each of these lists is complete, and Muster must recognize that. */
export const SPELLINGS: readonly Lesson[] = [...NO_RECORDS, ...TOTALS, ...MORE, ...NEXT, ...PAGES];
