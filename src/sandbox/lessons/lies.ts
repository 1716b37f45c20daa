import { type FetchedPage, type Members, withHeader, withMembers, withTold } from './answered-page.js';
import { type Lesson, PASSING_SECONDS, SEVERAL_PAGES } from './lesson.js';

const UNPROVED = 'The walk succeeds and is not verified';
const WITH_TOTAL = ['employees', 'departments', 'absences', 'contracts', 'shifts', 'notes'] as const;
const POSITIONED = ['employees', 'departments', 'absences', 'contracts'] as const;

/** Responses that look right but are wrong. A walk of such a list must not be verified. */
export const LIES: readonly Lesson[] = [
  {
    name: 'lie',
    does: 'The total on every page is seven too high.',
    see: `${UNPROVED}: contradicting_envelope (shifts: total_mismatch), since the total promises more records than came. Nothing is deleted.`,
    lists: WITH_TOTAL,
    act: { kind: 'page', change: (page) => withTold(page, 'total', String(page.total + 7)) },
  },
  {
    name: 'cut',
    does: 'Every page after the first is empty, although the total says that records follow.',
    see: `${UNPROVED}: never_ended (contracts: contradicting_envelope). Rows that were not received stay.`,
    lists: ['employees', 'departments', 'absences', 'contracts', 'notes'],
    records: SEVERAL_PAGES,
    act: { kind: 'page', change: (page) => (page.isFirst ? page : { ...page, records: [] }) },
  },
  {
    name: 'denied',
    does: 'The service answers 200 with "isSuccess": false, no records and a total of 0.',
    see: 'Muster does not take it for an empty list: the run waits, and succeeds once the service answers correctly. Every row stays.',
    seconds: PASSING_SECONDS,
    lists: POSITIONED,
    act: { kind: 'page', change: (page) => denied(page, { isSuccess: 'false', httpStatusCode: '403' }) },
  },
  {
    name: 'late-error',
    does: 'Every page after the first has no records and "errors": [{"code": "TIMEOUT"}].',
    see: 'The run waits, and continues from its checkpoint once the service answers correctly. Every row stays.',
    seconds: PASSING_SECONDS,
    lists: [...POSITIONED, 'documents', 'shifts', 'payslips', 'timesheets'],
    records: SEVERAL_PAGES,
    act: { kind: 'page', change: (page) => (page.isFirst ? page : denied(page, { errors: '[{"code":"TIMEOUT"}]' })) },
  },
  {
    name: 'contradict',
    does: 'There is no total, and the last page has "_links": {"next": "…"} although no record follows.',
    see: `${UNPROVED}: end_contradicted. Members around the records announce more records.`,
    lists: ['employees', 'departments', 'absences'],
    entry: 'fields: { total: none }',
    act: { kind: 'page', change: contradicted },
  },
  {
    name: 'no-link',
    does: 'A gateway removes the Link header, so the first page is full but names no next page.',
    see: `${UNPROVED}: end_unproved. No row is deleted.`,
    lists: ['positions'],
    records: SEVERAL_PAGES,
    act: { kind: 'page', change: (page) => withHeader(page, 'link', undefined) },
  },
  {
    name: 'same-etag',
    does: 'Every page has the ETag "v1", and a request with it gets 304 even after changes.',
    see: 'The first sync is right. Muster notices that two different pages have the same ETag, and sends no ETags from then on.',
    lists: ['employees', 'absences', 'contracts', 'shifts', 'notes', 'positions', 'timesheets'],
    act: { kind: 'page', change: sameEtag },
  },
];

/** A page without records whose members report a failure. */
function denied(page: FetchedPage, members: Members): FetchedPage {
  return withMembers(withTold({ ...page, records: [] }, 'total', '0'), members);
}

function contradicted(page: FetchedPage): FetchedPage {
  const silent = withMembers(withTold(page, 'total', undefined), { totalDisplayRecords: undefined });
  return page.isLast ? withMembers(silent, { _links: '{"next":"/next"}' }) : silent;
}

function sameEtag(page: FetchedPage): FetchedPage {
  const tagged = withHeader(page, 'etag', '"v1"');
  return page.ifNoneMatch === '"v1"' ? { ...tagged, status: 304 } : tagged;
}
