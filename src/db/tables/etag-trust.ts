// How long walks trust the ETags of a list is kept in its row of muster.lists. A tag is a promise of the service, so it is checked: after six walks in
// a row that skipped pages by tag, or six days, every page is requested, and each page's tag is compared with its text.
import { createHash } from 'node:crypto';
import { Prisma } from '../../generated/prisma/client.js';

/**
 * How a walk may use the ETags of a list:
 * - `ask`: tags of the walk before may replace pages.
 * - `check`: every page is requested, and its tag compared with its text.
 * - `none`: tags are known to be false.
 */
export type EtagTrust = 'ask' | 'check' | 'none';

const MOST_WALKS = 6;
/** The trust of a row `l` of muster.lists. */
export const ETAG_TRUST = Prisma.sql`CASE WHEN l.etags_false_since IS NOT NULL THEN 'none'
  WHEN l.etag_walks < ${MOST_WALKS}::int AND l.read_whole_at > now() - interval '6 days' THEN 'ask' ELSE 'check' END`;

/** How a walk used the ETags of its list. */
export interface EtagUse {
  /** Whether one stood for a page that was not sent. */
  readonly isUsed: boolean;
  /** Whether one tag came with two texts. */
  readonly isFalse: boolean;
}

/** SQL: what a row `l` of muster.lists records about false tags. */
export function etagsFalseSince({ isFalse }: EtagUse): Prisma.Sql {
  return Prisma.sql`etags_false_since = CASE WHEN ${isFalse}::boolean THEN COALESCE(l.etags_false_since, now()) ELSE l.etags_false_since END`;
}

/** The number of walks in a row that a verified walk leaves. The first period is cut short by the list's name, so that not all lists are sent in one night. */
export function etagWalksAfter({ isUsed }: EtagUse, name: readonly string[]): Prisma.Sql {
  const shortenedBy = createHash('sha256').update(JSON.stringify(name)).digest()[0]! % MOST_WALKS;
  return Prisma.sql`CASE WHEN ${isUsed}::boolean THEN l.etag_walks + 1 WHEN l.read_whole_at IS NULL THEN ${shortenedBy}::int ELSE 0 END`;
}

/** ETags that can be sent back as they came (RFC 9110, 8.8.3), short enough to be kept with every page. An empty one says nothing. */
export const ETAGS = {
  strong: /^"[\x21\x23-\x7e]{1,500}"$/,
  weak: /^(?:W\/)?"[\x21\x23-\x7e]{1,500}"$/,
};

/** Logged once for a list whose ETags are false. */
export function falseEtags({ resource }: { readonly resource: string }): string {
  return `The service gives one ETag to two texts of the list ${resource}: its pages are not asked for by ETags any more`;
}
