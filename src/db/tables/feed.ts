// Pages of the change feed, read from muster.change_batches and muster.changes. Nothing is locked.
import type pg from 'pg';
import type { Environment } from '../../core/company.js';
import { MusterError } from '../../core/errors.js';
import type { Database } from '../connection/database.js';
import { inPassingTransaction } from '../connection/passing-transaction.js';
import { READ_TIMEOUT } from '../connection/session.js';
import { named } from '../statements/named-parameters.js';

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

export interface ChangeQuery {
  /** The last number that the reader has seen, or 0. A bigint in decimal, as all numbers here. */
  readonly after: string;
  readonly resource?: string;
  readonly environment?: Environment;
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

/** Bytes of records at which a page ends, though more may be asked for. */
export const PAGE_BYTES = 8 * 1024 * 1024;

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

/**
 * The numbered changes after `after`, in their order. Reads only the batches of the page, and of these only the changes that are asked for, however
 * long the feed and its batches are. Throws `changes_expired` where changes after `after` are no longer kept,
 * `feed_restarted` where `after` is a number of another feed, and `LargerPage`.
 */
export function readChanges(db: Pick<Database, 'pool'>, query: ChangeQuery): Promise<ChangePage> {
  const { after, resource = null, environment = null, limit, mostBytes = Infinity } = query;
  const asked = { after, resource, environment, limit };
  return inPassingTransaction(db.pool, BEGIN, async (client) => {
    const { rows: spans } = await client.query<BatchSpan>(batchesOfPage({ ...asked, most: BATCHES_AT_ONCE }));
    const { feed, newest, oldest, first, last, searched, isCut } = spans[0]!;
    if (BigInt(after) > BigInt(newest) || (query.feed !== undefined && query.feed.toLowerCase() !== feed))
      throw restarted(query, { feed, newest });
    // A reader that begins at 0 has missed nothing.
    if (BigInt(after) > 0n && BigInt(after) + 1n < BigInt(oldest)) throw expired(after, BigInt(oldest));
    const { rows, isFull } =
      first === null ? { rows: [], isFull: false } : await readWhole(client, { ...asked, first, last }, mostBytes);
    if (isFull) return { rows, nextAfter: rows.at(-1)!.seq, feed, isCutShort: false };
    return { rows, nextAfter: String(BigInt(after) > BigInt(searched) ? BigInt(after) : searched), feed, isCutShort: isCut };
  });
}

/** The changes of a page, as many as it has bytes for: their bytes are counted first, record by record, and only these are sent. */
async function readWhole(client: pg.ClientBase, asked: Readonly<Record<Asked | Ends, unknown>>, mostBytes: number) {
  const { rows: sizes } = await client.query<{ until: string | null; bytes: number; isCut: boolean }>(sizeOfChanges(asked));
  const { until, bytes, isCut } = sizes[0]!;
  if (until === null) return { rows: [], isFull: false };
  if (bytes > mostBytes) throw new LargerPage(bytes);
  const { rows } = await client.query<ChangeRow>(changesOfBatches({ ...asked, until }));
  return { rows, isFull: isCut || rows.length === asked.limit };
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

type Asked = 'after' | 'resource' | 'environment' | 'limit';
/** The first numbers of the batches at both ends of the page. */
type Ends = 'first' | 'last';

const IS_ASKED_FOR =
  '(:resource::text IS NULL OR resource = :resource::text) AND (:environment::text IS NULL OR environment = :environment::text)';

/**
 * Begins with the batch that holds `after`. Without a filter a page reaches no further than `limit` numbers, but to the next batch at least: retention of
 * an earlier version has left gaps.
 */
const batchesOfPage = named<Asked | 'most'>(`
  WITH kept AS (
    SELECT COALESCE((SELECT min(first_seq) FROM muster.change_batches), (SELECT next_seq FROM muster.change_sequence)) AS oldest
  ), examined AS (
    SELECT first_seq, size, ${IS_ASKED_FOR} AS is_asked_for
    FROM muster.change_batches
    WHERE first_seq >= COALESCE((SELECT max(first_seq) FROM muster.change_batches WHERE first_seq <= :after::bigint), 0)
      AND (:resource::text IS NOT NULL OR :environment::text IS NOT NULL OR first_seq <= GREATEST(
             :after::bigint + :limit::int, (SELECT oldest - 1 FROM kept) + :limit::int,
             (SELECT min(first_seq) FROM muster.change_batches WHERE first_seq > :after::bigint)))
    ORDER BY first_seq LIMIT :most::bigint
  ), counted AS (
    SELECT first_seq, size, sum(size) FILTER (WHERE is_asked_for AND first_seq > :after::bigint) OVER (ORDER BY first_seq) AS changes FROM examined
  )
  SELECT (SELECT feed_id FROM muster.change_sequence) AS feed, (SELECT next_seq - 1 FROM muster.change_sequence) AS newest,
    (SELECT oldest FROM kept) AS oldest, min(first_seq) AS first,
    COALESCE(min(first_seq) FILTER (WHERE changes >= :limit::int), max(first_seq)) AS last,
    COALESCE(max(first_seq + size - 1), (SELECT next_seq - 1 FROM muster.change_sequence)) AS searched, count(*) = :most::bigint AS "isCut"
  FROM counted`);

const DATA = `(CASE WHEN c.length IS NULL THEN c.data
  ELSE convert_from(substr(b.texts, c.start - b.texts_from + 1, c.length), 'UTF8')::jsonb END)::text`;

/** Reads no more of a batch than the page takes: a deletion of many rows is one batch. */
const FROM_BATCHES = `
  FROM muster.change_batches b
  CROSS JOIN LATERAL (SELECT LEAST(GREATEST(0, :after::bigint + 1 - b.first_seq), b.size)::int AS skipped) s
  CROSS JOIN LATERAL (
    (SELECT r.position, r.record_id, r.op, r.data, NULL::int AS start, NULL::int AS length
     FROM muster.changes r WHERE r.batch_id = b.id AND r.position >= s.skipped ORDER BY r.position LIMIT :limit::int)
    UNION ALL
    SELECT s.skipped + w.n - 1, w.id, COALESCE(w.op, 'insert'), NULL, w.start, w.length
    FROM unnest(b.ids[s.skipped + 1 : s.skipped + :limit::int], b.starts[s.skipped + 1 : s.skipped + :limit::int],
                b.lengths[s.skipped + 1 : s.skipped + :limit::int], b.ops[s.skipped + 1 : s.skipped + :limit::int])
         WITH ORDINALITY AS w(id, start, length, op, n)
  ) c
  WHERE b.first_seq BETWEEN :first::bigint AND :last::bigint AND ${IS_ASKED_FOR}`;

/** The last change for which the page has bytes, and whether more of those asked for follow it. The first one is always taken. */
const sizeOfChanges = named<Asked | Ends>(`
  SELECT max(seq) FILTER (WHERE upto <= ${PAGE_BYTES} OR upto = bytes)::text AS until,
    max(upto) FILTER (WHERE upto <= ${PAGE_BYTES} OR upto = bytes)::float8 AS bytes,
    COALESCE(bool_or(upto > ${PAGE_BYTES} AND upto > bytes), FALSE) AS "isCut"
  FROM (SELECT seq, bytes, sum(bytes) OVER (ORDER BY seq) AS upto FROM (
    SELECT b.first_seq + c.position AS seq, COALESCE(octet_length(${DATA}), 0) AS bytes
    ${FROM_BATCHES} ORDER BY b.first_seq, c.position LIMIT :limit::int) sized) counted`);

const changesOfBatches = named<Asked | Ends | 'until'>(`
  SELECT b.first_seq + c.position AS seq, b.resource, b.environment, b.company_id AS "companyId", c.record_id AS id, c.op, ${DATA} AS data,
    b.changed_at AS "changedAt", b.run_id AS "runId"
  ${FROM_BATCHES} AND b.first_seq + c.position <= :until::bigint
  ORDER BY b.first_seq, c.position LIMIT :limit::int`);
