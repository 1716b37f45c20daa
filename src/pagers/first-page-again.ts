import { MusterError } from '../core/errors.js';
import type { Page, Received } from './pager.js';

/** The part of a pager's state that counts them. Checkpoints of earlier versions lack `again`. */
export type FirstPageState = {
  /** Requests of this pass that were answered so far. */
  readonly requests: number;
  /** Pages in a row that were the first page again. */
  readonly again?: number;
};

/**
 * A list that moves can bring its first page again at another place: if just as many records joined in front of it as lie between the two
 * places. Therefore one page proves nothing, and neither do a few very short ones: to call a right declaration wrong is the worse error.
 */
const LEAST_PAGES = 2;
const LEAST_RECORDS = 20;

/**
 * How many pages in a row, this one the last, were the first page again, record by record, though another was asked for. Throws
 * `pager_misdeclared` once that is no coincidence: the service does not read the pager's parameters.
 * `members`: the members of the catalogue entry that may be wrong, with their values where these are names.
 */
export function countFirstPages(
  { requests, again = 0 }: FirstPageState,
  page: Page,
  received: Received,
  resource: string,
  members: Readonly<Record<string, string | undefined>>,
): number {
  if (requests === 0 || page.count === 0 || !received.isFirstPage) return 0;
  const pages = again + 1;
  if (pages >= LEAST_PAGES && pages * page.count >= LEAST_RECORDS) throw pagerMisdeclared(resource, pages, members);
  return pages;
}

/** Says that the first page came again, `pages` times, and which members of the catalogue entry to check. */
export function pagerMisdeclared(
  resource: string,
  pages: number,
  members: Readonly<Record<string, string | undefined>>,
): MusterError {
  const named = Object.entries(members).map(([member, name]) => (name === undefined ? member : `${member} (${name})`));
  return new MusterError(
    'pager_misdeclared',
    `The list ${resource} gave its first page ${pages === 1 ? 'again' : `again ${pages} times in a row`}, though other pages were asked for: ` +
      `the service does not read what asks for them. Check in the catalogue, in this list's entry: ${named.join(', ')}; ` +
      'and id, should the records have ids that begin again on every page.',
    { details: { resource, pages, members: Object.keys(members) } },
  );
}
