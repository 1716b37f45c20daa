// Pages of the change feed, read from muster.change_batches and muster.changes. Nothing is locked.
import type pg from 'pg';
import { ENVIRONMENTS, type Environment } from '../../core/company.js';
import { MusterError } from '../../core/errors.js';
import type { Database } from '../connection/database.js';
import { inPassingTransaction } from '../connection/passing-transaction.js';
import { READ_TIMEOUT } from '../connection/session.js';
import { type Asked, type Ends, feedStatements, PAGE_BYTES } from './feed-statements.js';

export interface ChangeRow {
  /** A bigint in decimal. */
  readonly seq: string;
  readonly resource: string;
  readonly environment: string;
  readonly companyId: string;
  readonly id: string;
  readonly op: string;
  /** JSON as text, with every digit of its numbers; null where the change has no record. */
  readonly data: string | null;
  readonly changedAt: Date;
  readonly runId: string | null;
}

/** Which changes of the feed. */
export interface ChangeFilter {
  readonly resource?: string;
  readonly environment?: Environment;
  readonly companyId?: string;
  /** The id of a record. */
  readonly id?: string;
}

export interface ChangeQuery extends ChangeFilter {
  /** The last number that the reader has seen, or 0. A bigint in decimal, as all numbers here. */
  readonly after: string;
  /** The id of the feed that gave `after`, where the reader knows it. */
  readonly feed?: string;
  readonly limit: number;
  /** Bytes for which the reader has memory, at least `PAGE_BYTES`; any number unless said. */
  readonly mostBytes?: number;
}

export interface ChangePage {
  readonly rows: readonly ChangeRow[];
  /** The last number that was searched, asked for or not: the next page begins after it. */
  readonly nextAfter: string;
  /** The id of the feed. */
  readonly feed: string;
  /** Whether the search stopped before the page was full: more may follow, even after an empty page. */
  readonly isCutShort: boolean;
}

export { PAGE_BYTES };

/** The page is one record, which has more bytes than its reader has memory for. */
export class LargerPage extends Error {
  constructor(readonly bytes: number) {
    super(`a page of one record has ${bytes} bytes`);
    this.name = 'LargerPage';
  }
}

/** Batches that one page searches, so that a rare resource does not make it read the whole feed. */
const BATCHES_AT_ONCE = 10_000;

/** Between two snapshots retention could remove changes that the first has counted, and the page would silently leave them out. */
const BEGIN = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout = '15s';
  SET LOCAL statement_timeout = '${READ_TIMEOUT}'; SET LOCAL jit = off`;
const BEGIN_BY_INDEX = `${BEGIN}; SET LOCAL enable_seqscan = off`;

/**
 * The numbered changes after `after`, in their order. Reads only the batches of the page, and of these only the changes that are asked for, however
 * long the feed and its batches are. Throws `changes_expired` where changes after `after` are no longer kept,
 * `feed_restarted` where `after` is a number of another feed, and `LargerPage`.
 */
export function readChanges(db: Pick<Database, 'pool'>, query: ChangeQuery): Promise<ChangePage> {
  const { after, limit, mostBytes = Infinity } = query;
  const { statements, begin, asked } = prepare({ ...query, edge: after }, { isNewestFirst: false });
  return inPassingTransaction(db.pool, begin, async (client) => {
    const { rows: spans } = await client.query<BatchSpan>(statements.batches({ ...asked, most: BATCHES_AT_ONCE }));
    const { feed, newest, oldest, first, last, searched, isCut } = spans[0]!;
    if (BigInt(after) > BigInt(newest) || (query.feed !== undefined && query.feed.toLowerCase() !== feed))
      throw restarted(query, { feed, newest });
    // A reader that begins at 0 has missed nothing.
    if (BigInt(after) > 0n && BigInt(after) + 1n < BigInt(oldest)) throw expired(after, BigInt(oldest));
    const { rows, isFull } =
      first === null
        ? { rows: [], isFull: false }
        : await readWhole(client, statements, { ...asked, first, last }, { limit, mostBytes });
    if (isFull) return { rows, nextAfter: rows.at(-1)!.seq, feed, isCutShort: false };
    return { rows, nextAfter: String(BigInt(after) > BigInt(searched) ? BigInt(after) : searched), feed, isCutShort: isCut };
  });
}

export interface NewestQuery extends ChangeFilter {
  /** Only changes with smaller numbers; unset: from the newest one on. */
  readonly before?: string | undefined;
  readonly limit: number;
  readonly mostBytes?: number;
}

export interface NewestPage {
  /** Newest first. */
  readonly rows: readonly ChangeRow[];
  /** Where older changes go on; null where none is kept. */
  readonly nextBefore: string | null;
  /** The highest number of the feed: a reader who follows it begins there. */
  readonly newest: string;
  readonly feed: string;
}

/** No number of the feed is greater. */
const BEYOND_ALL = String(2n ** 63n - 1n);

/**
 * The numbered changes newest first, for people: what changed last. A page may be short or empty although older ones follow. Throws `LargerPage`.
 * A consumer reads in the order of numbers instead, since only that misses none.
 */
export function readNewestChanges(db: Pick<Database, 'pool'>, query: NewestQuery): Promise<NewestPage> {
  const { before = BEYOND_ALL, limit, mostBytes = Infinity } = query;
  const { statements, begin, asked } = prepare({ ...query, edge: before }, { isNewestFirst: true });
  // Without a filter every batch has a change of the page, so that it needs no more of them.
  const isFiltered = [query.resource, query.environment, query.companyId, query.id].some((each) => each !== undefined);
  const most = isFiltered ? BATCHES_AT_ONCE : limit + 1;
  return inPassingTransaction(db.pool, begin, async (client) => {
    const { rows: spans } = await client.query<BatchSpan>(statements.batches({ ...asked, most }));
    const { feed, newest, first, last, searched, isCut } = spans[0]!;
    if (first === null) return { rows: [], nextBefore: null, newest, feed };
    const { rows, isFull } = await readWhole(client, statements, { ...asked, first, last }, { limit, mostBytes });
    if (isFull) return { rows, nextBefore: rows.at(-1)!.seq, newest, feed };
    return { rows, nextBefore: isCut ? searched : null, newest, feed };
  });
}

type Statements = ReturnType<typeof feedStatements>;

function prepare(
  { edge, resource, environment, companyId, id, limit }: ChangeFilter & { readonly edge: string; readonly limit: number },
  { isNewestFirst }: { readonly isNewestFirst: boolean },
) {
  const isOfCompany = companyId !== undefined;
  const asked: Readonly<Record<Asked, unknown>> = {
    edge,
    resource: resource ?? null,
    environment: environment ?? null,
    environments: environment === undefined ? ENVIRONMENTS : [environment],
    companyId: companyId ?? null,
    id: id ?? null,
    limit,
  };
  return {
    statements: feedStatements({ isNewestFirst, isOfCompany, isOfRecord: id !== undefined }),
    begin: isOfCompany ? BEGIN_BY_INDEX : BEGIN,
    asked,
  };
}

/** The changes of a page, as many as it has bytes for: their bytes are counted first, record by record, and only these are sent. */
async function readWhole(
  client: pg.ClientBase,
  statements: Statements,
  asked: Readonly<Record<Asked | Ends, unknown>>,
  { limit, mostBytes }: { readonly limit: number; readonly mostBytes: number },
) {
  const { rows: sizes } = await client.query<{ until: string | null; bytes: number; isCut: boolean }>(statements.sizes(asked));
  const { until, bytes, isCut } = sizes[0]!;
  if (until === null) return { rows: [], isFull: false };
  if (bytes > mostBytes) throw new LargerPage(bytes);
  const { rows } = await client.query<ChangeRow>(statements.changes({ ...asked, until }));
  return { rows, isFull: isCut || rows.length === limit };
}

function expired(after: string, oldest: bigint): MusterError {
  const goOn = String(oldest - 1n);
  return new MusterError(
    'changes_expired',
    `The changes from ${BigInt(after) + 1n} to ${goOn} are no longer kept (CHANGE_RETENTION_DAYS). Read the mirror's tables again, then go on ` +
      `with after=${goOn}.`,
    { details: { go_on_after: Number(goOn) } },
  );
}

function restarted({ after, feed: asked }: ChangeQuery, { feed, newest }: Pick<BatchSpan, 'feed' | 'newest'>): MusterError {
  const why =
    BigInt(after) > BigInt(newest)
      ? `after=${after} lies beyond the end of the feed, which is ${newest}`
      : `The feed is not ${asked}`;
  return new MusterError(
    'feed_restarted',
    `${why}: these are of another database, such as the one before an older backup was restored. Read the mirror's tables again, then go on with ` +
      `after=${newest} and feed=${feed}.`,
    { details: { feed, go_on_after: Number(newest) } },
  );
}

/** `first` and `last` are the first numbers of the batches at both ends of the page; null where there is none. */
interface BatchSpan {
  readonly feed: string;
  /** The highest number ever given, whatever retention has removed. */
  readonly newest: string;
  /** The oldest number that is kept, or the next to be given. */
  readonly oldest: string;
  readonly first: string | null;
  readonly last: string | null;
  /** The last number that was searched, where the page is not full: the last of all, unless the search stopped early. */
  readonly searched: string;
  readonly isCut: boolean;
}
