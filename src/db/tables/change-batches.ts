// muster.change_batches: changes of a list that were committed together. Whoever commits a change of mirrored rows adds a batch, and a sweep
// numbers it after the commit (`first_seq`). Its triggers keep muster.change_numbers, by which the view mirror.changes finds a number.
// Who writes batches that are there locks them by id, before their changes: numbering, which holds muster.change_sequence, removal and retention.
import pg from 'pg';
import type { CompanyKey, Environment } from '../../core/company.js';
import { MusterError } from '../../core/errors.js';
import { Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../database.js';
import { inPieces, PIECE_ROWS } from '../in-pieces.js';
import { inPassingTransaction } from '../passing-transaction.js';
import { READ_TIMEOUT } from '../session.js';
import { sqlState } from '../sql-state.js';
import { inTransaction, type Transaction } from '../transaction.js';
import { FIRST_WAITING_BARRIER, numberBarriers, removeOldBarriers } from './barriers.js';
import { isOf } from './connections.js';
import { isOfList, type ListKey } from './lists.js';

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
  /** The id of the feed that `after` is of, where the reader knows it. */
  readonly feed?: string;
  readonly limit: number;
}

export interface ChangePage {
  readonly rows: readonly ChangeRow[];
  /** From where to read on: behind all that was looked through, whether it was asked for or not. */
  readonly nextAfter: string;
  /** The id of the feed. */
  readonly feed: string;
  /** Whether the search was given up before the page was full: more may follow, even behind an empty page. */
  readonly isCutShort: boolean;
}

/** Bytes of records at which a page ends, though more may be asked for. */
export const PAGE_BYTES = 8 * 1024 * 1024;

/** Batches that one page looks through for those that are asked for, so that a rare resource does not make it read the whole feed. */
const BATCHES_AT_ONCE = 10_000;

/** Between two snapshots retention could remove what the first has counted, and the page would leave it out without a word. */
const BEGIN = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout = '15s';
  SET LOCAL statement_timeout = '${READ_TIMEOUT}'; SET LOCAL jit = off`;

/**
 * The numbered changes after `after`, in their order. Reads the batches that the page is made of and no others, and of these the changes
 * that are asked for, however long the feed and its batches are. Throws `changes_expired` where changes after `after` are no longer kept, and
 * `feed_restarted` where `after` is a number of another feed.
 */
export function readChanges(db: Pick<Database, 'pool'>, query: ChangeQuery): Promise<ChangePage> {
  const { after, resource = null, environment = null, limit } = query;
  const asked = [after, resource, environment, limit];
  return inPassingTransaction(db.pool, BEGIN, async (client) => {
    const { rows: spans } = await client.query<BatchSpan>(BATCHES_OF_PAGE, [...asked, BATCHES_AT_ONCE]);
    const { feed, newest, oldest, first, last, searched, isCut } = spans[0]!;
    if (BigInt(after) > BigInt(newest) || (query.feed !== undefined && query.feed.toLowerCase() !== feed))
      throw restarted(query, { feed, newest });
    // Who begins at 0 has missed nothing: the feed begins where it begins.
    if (BigInt(after) > 0n && BigInt(after) + 1n < BigInt(oldest)) throw expired(after, BigInt(oldest));
    const { rows, isFull } =
      first === null ? { rows: [], isFull: false } : await readWhole(client, [...asked, first, last], limit);
    if (isFull) return { rows, nextAfter: rows.at(-1)!.seq, feed, isCutShort: false };
    return { rows, nextAfter: String(BigInt(after) > BigInt(searched) ? BigInt(after) : searched), feed, isCutShort: isCut };
  });
}

/** The changes of a page, as many as it has bytes for: what they take is counted first, record by record, and only these are sent. */
async function readWhole(client: pg.ClientBase, asked: readonly unknown[], limit: number) {
  const { rows: sizes } = await client.query<{ until: string | null; isCut: boolean }>(SIZE_OF_CHANGES, [...asked]);
  const { until, isCut } = sizes[0]!;
  if (until === null) return { rows: [], isFull: false };
  const { rows } = await client.query<ChangeRow>(CHANGES_OF_BATCHES, [...asked, until]);
  return { rows, isFull: isCut || rows.length === limit };
}

/** What of the feed is kept and numbered, in one snapshot. Bigints in decimal; `newest` is below `oldest` where nothing is kept. */
export async function feedSpan(client: Pick<pg.ClientBase, 'query'>): Promise<{ oldest: string; newest: string }> {
  const { rows } = await client.query<{ oldest: string; newest: string }>(
    `SELECT COALESCE((SELECT min(first_seq) FROM muster.change_batches), next_seq)::text AS oldest, (next_seq - 1)::text AS newest
     FROM muster.change_sequence`,
  );
  return rows[0]!;
}

/**
 * The text of a query for the records of a resource that changed behind `after`: environment, company_id, id, and op and seq of the newest
 * change of each. It has no parameters, as COPY takes none.
 */
export function changedRecords({ resource, after }: { readonly resource: string; readonly after: string }): string {
  const seq = pg.escapeLiteral(after);
  return `
    SELECT DISTINCT ON (b.environment, b.company_id, c.id) b.environment, b.company_id, c.id, c.op, b.first_seq + c.position AS seq
    FROM muster.change_batches b
    CROSS JOIN LATERAL (
      SELECT r.position, r.record_id AS id, r.op FROM muster.changes r WHERE r.batch_id = b.id
      UNION ALL
      SELECT w.n - 1, w.id, COALESCE(w.op, 'insert') FROM unnest(b.ids, b.ops) WITH ORDINALITY AS w(id, op, n)
    ) c
    WHERE b.first_seq >= COALESCE((SELECT max(first_seq) FROM muster.change_batches WHERE first_seq <= ${seq}::bigint), 0)
      AND b.resource = ${pg.escapeLiteral(resource)} AND b.first_seq + c.position > ${seq}::bigint
    ORDER BY b.environment, b.company_id, c.id, b.first_seq + c.position DESC`;
}

function expired(after: string, oldest: bigint): MusterError {
  const goOn = String(oldest - 1n);
  return new MusterError(
    'changes_expired',
    `The changes from ${BigInt(after) + 1n} to ${goOn} are no longer kept (CHANGE_RETENTION_DAYS). Read the mirror's tables anew, then go on ` +
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
    `${why}: these are of another database, such as it was before an older backup was restored. Read the mirror's tables anew, then go on with ` +
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
  /** The last number that was looked at, where the page is not full: the last of all, unless the search was cut. */
  readonly searched: string;
  readonly isCut: boolean;
}

const IS_ASKED_FOR = '($2::text IS NULL OR resource = $2::text) AND ($3::text IS NULL OR environment = $3::text)';

/**
 * Begins with the batch that holds `after`. Without a filter, each number is a change of the page, and one page reaches no further than its
 * numbers do, but to the next batch at least: retention of an earlier version has left gaps.
 */
const BATCHES_OF_PAGE = `
  WITH kept AS (
    SELECT COALESCE((SELECT min(first_seq) FROM muster.change_batches), (SELECT next_seq FROM muster.change_sequence)) AS oldest
  ), examined AS (
    SELECT first_seq, size, ${IS_ASKED_FOR} AS is_asked_for
    FROM muster.change_batches
    WHERE first_seq >= COALESCE((SELECT max(first_seq) FROM muster.change_batches WHERE first_seq <= $1::bigint), 0)
      AND ($2::text IS NOT NULL OR $3::text IS NOT NULL OR first_seq <= GREATEST(
             $1::bigint + $4::int, (SELECT oldest - 1 FROM kept) + $4::int,
             (SELECT min(first_seq) FROM muster.change_batches WHERE first_seq > $1::bigint)))
    ORDER BY first_seq LIMIT $5::bigint
  ), counted AS (
    SELECT first_seq, size, sum(size) FILTER (WHERE is_asked_for AND first_seq > $1::bigint) OVER (ORDER BY first_seq) AS changes FROM examined
  )
  SELECT (SELECT feed_id FROM muster.change_sequence) AS feed, (SELECT next_seq - 1 FROM muster.change_sequence) AS newest,
    (SELECT oldest FROM kept) AS oldest, min(first_seq) AS first,
    COALESCE(min(first_seq) FILTER (WHERE changes >= $4::int), max(first_seq)) AS last,
    COALESCE(max(first_seq + size - 1), (SELECT next_seq - 1 FROM muster.change_sequence)) AS searched, count(*) = $5::bigint AS "isCut"
  FROM counted`;

const DATA = `(CASE WHEN c.length IS NULL THEN c.data
  ELSE convert_from(substr(b.texts, c.start - b.texts_from + 1, c.length), 'UTF8')::jsonb END)::text`;

/** Of each batch no more than the page takes, since a deletion of many rows is one batch. */
const FROM_BATCHES = `
  FROM muster.change_batches b
  CROSS JOIN LATERAL (SELECT LEAST(GREATEST(0, $1::bigint + 1 - b.first_seq), b.size)::int AS skipped) s
  CROSS JOIN LATERAL (
    (SELECT r.position, r.record_id, r.op, r.data, NULL::int AS start, NULL::int AS length
     FROM muster.changes r WHERE r.batch_id = b.id AND r.position >= s.skipped ORDER BY r.position LIMIT $4::int)
    UNION ALL
    SELECT s.skipped + w.n - 1, w.id, COALESCE(w.op, 'insert'), NULL, w.start, w.length
    FROM unnest(b.ids[s.skipped + 1 : s.skipped + $4::int], b.starts[s.skipped + 1 : s.skipped + $4::int],
                b.lengths[s.skipped + 1 : s.skipped + $4::int], b.ops[s.skipped + 1 : s.skipped + $4::int])
         WITH ORDINALITY AS w(id, start, length, op, n)
  ) c
  WHERE b.first_seq BETWEEN $5::bigint AND $6::bigint AND ${IS_ASKED_FOR}`;

/** The last change for which the page has bytes, and whether more of those asked for follow it. The first one is always taken. */
const SIZE_OF_CHANGES = `
  SELECT max(seq) FILTER (WHERE upto <= ${PAGE_BYTES} OR upto = bytes)::text AS until,
    COALESCE(bool_or(upto > ${PAGE_BYTES} AND upto > bytes), FALSE) AS "isCut"
  FROM (SELECT seq, bytes, sum(bytes) OVER (ORDER BY seq) AS upto FROM (
    SELECT b.first_seq + c.position AS seq, COALESCE(octet_length(${DATA}), 0) AS bytes
    ${FROM_BATCHES} ORDER BY b.first_seq, c.position LIMIT $4::int) sized) counted`;

const CHANGES_OF_BATCHES = `
  SELECT b.first_seq + c.position AS seq, b.resource, b.environment, b.company_id AS "companyId", c.record_id AS id, c.op, ${DATA} AS data,
    b.changed_at AS "changedAt", b.run_id AS "runId"
  ${FROM_BATCHES} AND b.first_seq + c.position <= $7::bigint
  ORDER BY b.first_seq, c.position LIMIT $4::int`;

/**
 * What one transaction numbers at most, so that a first mirror of many millions is numbered piece by piece. A batch is never divided: one of
 * millions, as a whole list that is gone, takes longer, but was written in one transaction, which takes longer still.
 */
const NUMBERED_AT_ONCE = { batches: 1_000, changes: 100_000 };

/**
 * Numbers the batches, and the barriers behind them, that were committed since the last call. One sequencer at a time, across processes: the row of
 * muster.change_sequence is locked first, in a statement of its own, so that the next statement sees every batch that
 * the previous holder stamped. A number, once visible, has every smaller number visible beside it: that is what lets a
 * consumer read on from the last number it saw. Foreign transactions, however long, do not matter. Returns early where another
 * process is at a batch so long that the lock is not had in time: that one numbers the rest as well.
 */
export async function stampChanges(db: Database): Promise<void> {
  // In an order that the index has: right behind a first mirror PostgreSQL believes that most batches wait, and would read the table to find one.
  // No EXISTS, for that forgets the order.
  const [waiting] = await db.prisma.$queryRaw<{ any: boolean }[]>`
    SELECT COALESCE((SELECT id FROM muster.change_batches WHERE first_seq IS NULL ORDER BY id LIMIT 1), ${FIRST_WAITING_BARRIER}) IS NOT NULL AS any`;
  if (!waiting!.any) return;
  try {
    while (await stampPiece(db));
  } catch (error) {
    if (sqlState(error) !== '55P03') throw error; // lock_not_available
  }
}

/** Whether more may wait. */
function stampPiece(db: Database): Promise<boolean> {
  const { batches, changes } = NUMBERED_AT_ONCE;
  return inTransaction(db, async (tx) => {
    // An ANALYZE beside the first commits counts no rows, and a planner that expects none compares each batch with all of a piece.
    await tx.$executeRaw`SELECT set_config('enable_nestloop', 'off', true), set_config('jit', 'off', true) FROM muster.change_sequence FOR UPDATE`;
    const [piece] = await tx.$queryRaw<{ isFull: boolean }[]>`
      WITH waiting AS (
        SELECT id, size FROM muster.change_batches WHERE first_seq IS NULL ORDER BY id LIMIT ${batches} FOR UPDATE
      ), counted AS (
        SELECT id, size, sum(size) OVER (ORDER BY id) - size AS before FROM waiting
      ), numbered AS (
        SELECT id, size, before FROM counted WHERE before < ${changes}
      ), stamped AS (
        UPDATE muster.change_batches b SET first_seq = (SELECT next_seq FROM muster.change_sequence) + n.before
        FROM numbered n
        WHERE b.id = n.id AND b.first_seq IS NULL AND b.id BETWEEN (SELECT min(id) FROM numbered) AND (SELECT max(id) FROM numbered)
      )
      UPDATE muster.change_sequence SET next_seq = next_seq + COALESCE((SELECT sum(size) FROM numbered), 0)
      RETURNING (SELECT count(*) = ${batches} OR COALESCE(sum(size), 0) > ${changes} FROM waiting) AS "isFull"`;
    await numberBarriers(tx);
    return piece!.isFull;
  });
}

interface SizedBatch {
  readonly id: bigint;
  readonly size: number;
}

/**
 * Takes the data out of every change of a list, or of a company's lists, that the feed has; ids, ops and numbers stay. The caller has locked
 * the lists.
 */
export async function purgeChanges(tx: Transaction, of: CompanyKey | ListKey): Promise<void> {
  const condition = 'resource' in of ? isOfList(of) : isOf(of);
  const query = Prisma.sql`SELECT id, size FROM muster.change_batches WHERE ${condition} ORDER BY id FOR UPDATE`;
  for await (const batches of inPieces<SizedBatch>(tx, query)) {
    for (const ids of groupBySize(batches)) {
      await tx.$executeRaw`UPDATE muster.changes SET data = NULL WHERE batch_id = ANY(${ids}::bigint[]) AND data IS NOT NULL`;
      await tx.$executeRaw`UPDATE muster.change_batches SET texts = NULL WHERE id = ANY(${ids}::bigint[]) AND texts IS NOT NULL`;
    }
  }
}

/** Ids of batches in a row that have some PIECE_ROWS changes together. A batch that has more by itself is a group of its own. */
function groupBySize(batches: readonly SizedBatch[]): bigint[][] {
  const groups: bigint[][] = [];
  let room = 0;
  for (const { id, size } of batches) {
    if (size > room || groups.length === 0) {
      groups.push([]);
      room = PIECE_ROWS;
    }
    groups.at(-1)!.push(id);
    room -= size;
  }
  return groups;
}

/** Batches, and barriers, that one transaction removes, so that none is long. */
const REMOVED_AT_ONCE = 200;
const BARRIERS_AT_ONCE = 1_000;

/**
 * Removes the changes that are older than so many days, oldest first and whole batches at a time, and none behind one that stays: the feed
 * has no gaps. The numbers of those that stay, and of those to come, do not change. Barriers go at the same age, but for the newest of each list.
 */
export async function removeOldChanges(db: Database, days: number): Promise<void> {
  await stampChanges(db); // a barrier that waits takes its number from a batch that may be about to go
  for (let removed = REMOVED_AT_ONCE; removed === REMOVED_AT_ONCE; ) {
    removed = await db.prisma.$executeRaw`
      WITH oldest AS (
        SELECT id, bool_and(changed_at < now() - make_interval(days => ${days}::int)) OVER (ORDER BY first_seq) AS may_go
        FROM (SELECT id, first_seq, changed_at FROM muster.change_batches WHERE first_seq IS NOT NULL
              ORDER BY first_seq LIMIT ${REMOVED_AT_ONCE}) b
      ), locked AS (
        SELECT id FROM muster.change_batches WHERE id IN (SELECT id FROM oldest WHERE may_go) ORDER BY id FOR UPDATE
      )
      DELETE FROM muster.change_batches b USING locked WHERE b.id = locked.id`;
  }
  while ((await removeOldBarriers(db, { days, limit: BARRIERS_AT_ONCE, which: 'all' })) === BARRIERS_AT_ONCE);
}
