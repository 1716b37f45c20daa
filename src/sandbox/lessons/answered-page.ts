import type { Resource } from '../company-spec.js';

/** The places of a list's paging values: members of the envelope, or `header x-…`. A bare array has no `records`. */
interface EnvelopeNames {
  readonly records?: string;
  readonly total?: string;
  readonly more?: string;
  readonly next?: string;
}

const TOTALLED = { records: 'data', total: 'totalRecords' };

const ENVELOPES: Readonly<Record<Resource, EnvelopeNames>> = {
  employees: TOTALLED,
  departments: TOTALLED,
  absences: TOTALLED,
  documents: { records: 'data', more: 'hasNextPage', next: 'nextPageToken' },
  positions: { next: 'header link' },
  contracts: { records: 'items', total: 'count' },
  shifts: { records: 'value', total: '@odata.count', next: '@odata.nextLink' },
  notes: { total: 'header x-total-count' },
  payslips: { records: 'items', more: 'more' },
  timesheets: { records: 'rows', next: 'header x-next-cursor' },
};

/** The response to a request for a page, before it is serialized. Functions return changed copies. */
export interface FetchedPage {
  readonly resource: Resource;
  /** Whether the request was for the first page. */
  readonly isFirst: boolean;
  /** Whether no record follows. */
  readonly isLast: boolean;
  /** The position of its first record, if the request named a position. */
  readonly position: number | undefined;
  /** Number of records of the whole list. */
  readonly total: number;
  readonly ifNoneMatch: string | undefined;
  readonly status: number;
  /** A header with several values is sent several times. Names are lower case. */
  readonly headers: Readonly<Record<string, string | string[]>>;
  /** The records as JSON texts. */
  readonly records: readonly string[];
  /** The members of the envelope as JSON texts, given the array of the records; undefined for a bare array. */
  readonly members: ((records: string) => Members) | undefined;
}

/** JSON texts by name; undefined removes the member. */
export type Members = Readonly<Record<string, string | undefined>>;

/** Changes members of the envelope, or adds them. A bare array stays as it is. */
export function withMembers(page: FetchedPage, changed: Members | ((members: Members) => Members)): FetchedPage {
  const { members } = page;
  if (!members) return page;
  const all = (records: string) => {
    const before = members(records);
    return { ...before, ...(typeof changed === 'function' ? changed(before) : changed) };
  };
  return { ...page, members: all };
}

export function withHeader(page: FetchedPage, name: string, value: string | string[] | undefined): FetchedPage {
  const { [name]: _replaced, ...others } = page.headers;
  return { ...page, headers: value === undefined ? others : { ...others, [name]: value } };
}

/** Changes the value with this role, wherever the list has it. `text` is a JSON text; undefined removes the value. */
export function withTold(page: FetchedPage, role: keyof EnvelopeNames, text: string | undefined): FetchedPage {
  const name = ENVELOPES[page.resource][role];
  if (name === undefined) return page;
  const [, header] = /^header (.*)$/.exec(name) ?? [];
  return header === undefined ? withMembers(page, { [name]: text }) : withHeader(page, header, text);
}

/** The JSON text of the value with this role. */
export function told(page: FetchedPage, role: keyof EnvelopeNames): string | undefined {
  const name = ENVELOPES[page.resource][role];
  return name === undefined ? undefined : page.members?.('[]')[name];
}
