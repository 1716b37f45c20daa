import { type FetchedPage, type Members, withHeader, withMembers, withTold } from './answered-page.js';
import { type Lesson, PASSING_SECONDS, SEVERAL_PAGES } from './lesson.js';

const UNPROVED = 'The walk succeeds and is not verified';
const WITH_TOTAL = ['employees', 'departments', 'absences', 'contracts', 'shifts', 'notes'] as const;
const POSITIONED = ['employees', 'departments', 'absences', 'contracts'] as const;

/** Answers that look well and are wrong. None of them may be verified. */
export const LIES: readonly Lesson[] = [
  {
    name: 'lie',
    does: 'Every page claims seven records more than the list has.',
    see: `${UNPROVED}: contradicting_envelope (shifts: total_mismatch), since the total promises more than there is. Nothing is deleted.`,
    lists: WITH_TOTAL,
    act: { kind: 'page', change: (page) => withTold(page, 'total', String(page.total + 7)) },
  },
  {
    name: 'cut',
    does: 'Every page after the first is empty, although the total says that records follow.',
    see: `${UNPROVED}: never_ended (contracts: contradicting_envelope). The rows that were not received stay.`,
    lists: ['employees', 'departments', 'absences', 'contracts', 'notes'],
    records: SEVERAL_PAGES,
    act: { kind: 'page', change: (page) => (page.isFirst ? page : { ...page, records: [] }) },
  },
  {
    name: 'denied',
    does: 'The list is answered 200 with "isSuccess": false, no records and a total of 0.',
    see: 'That is no empty list: the run waits, and succeeds once the service answers rightly. Every row stays.',
    seconds: PASSING_SECONDS,
    lists: POSITIONED,
    act: { kind: 'page', change: (page) => denied(page, { isSuccess: 'false', httpStatusCode: '403' }) },
  },
  {
    name: 'late-error',
    does: 'Every page after the first has no records and "errors": [{"code": "TIMEOUT"}].',
    see: 'The run waits, and goes on from its checkpoint once the service answers rightly. Every row stays.',
    seconds: PASSING_SECONDS,
    lists: [...POSITIONED, 'documents', 'shifts', 'payslips', 'timesheets'],
    records: SEVERAL_PAGES,
    act: { kind: 'page', change: (page) => (page.isFirst ? page : denied(page, { errors: '[{"code":"TIMEOUT"}]' })) },
  },
  {
    name: 'contradict',
    does: 'No total is told, and the last page has "_links": {"next": "…"} although no record follows.',
    see: `${UNPROVED}: end_contradicted. What is around the records says that more of them follow.`,
    lists: ['employees', 'departments', 'absences'],
    entry: 'fields: { total: none }',
    act: { kind: 'page', change: contradicted },
  },
  {
    name: 'no-link',
    does: 'A gateway strips the Link header, so that the first page is full and names no next one.',
    see: `${UNPROVED}: end_unproved. No row is deleted.`,
    lists: ['positions'],
    records: SEVERAL_PAGES,
    act: { kind: 'page', change: (page) => withHeader(page, 'link', undefined) },
  },
  {
    name: 'same-etag',
    does: 'Every page carries the ETag "v1", and a request that names it is answered 304, whatever changed.',
    see: 'The first sync is right. Muster notices that two texts have one tag, and asks without ETags from then on.',
    lists: ['employees', 'absences', 'contracts', 'shifts', 'notes', 'positions', 'timesheets'],
    act: { kind: 'page', change: sameEtag },
  },
];

/** A page without records whose members tell of a failure. */
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
