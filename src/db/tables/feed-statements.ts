// The statements that read a page of the feed, from its beginning on or newest first; of all lists, of a company, or of one record.
import { named } from '../statements/named-parameters.js';

export interface PageKind {
  readonly isNewestFirst: boolean;
  /** Only batches of one company, which an index finds. */
  readonly isOfCompany: boolean;
  /** Only changes of one record. */
  readonly isOfRecord: boolean;
}

/** `edge`: the last number that the reader has seen; newest first, the page has smaller numbers. */
export type Asked = 'edge' | 'resource' | 'environment' | 'environments' | 'companyId' | 'id' | 'limit';
/** The first numbers of the batches at both ends of the page, the smaller one first. */
export type Ends = 'first' | 'last';

/** Bytes of records at which a page ends, though more may be asked for. */
export const PAGE_BYTES = 8 * 1024 * 1024;

const DATA = `(CASE WHEN c.length IS NULL THEN c.data
  ELSE convert_from(substr(b.texts, c.start - b.texts_from + 1, c.length), 'UTF8')::jsonb END)::text`;

const OF_LIST =
  '(:resource::text IS NULL OR b.resource = :resource::text) AND (:environment::text IS NULL OR b.environment = :environment::text)';
const OF_COMPANY = `b.environment = ANY(:environments::text[]) AND b.company_id = :companyId::uuid`;
/** A batch has the ids itself, or a row for each of its changes. */
const HAS_RECORD = `COALESCE(b.ids @> ARRAY[:id::text], (SELECT TRUE FROM muster.changes r WHERE r.batch_id = b.id AND r.record_id = :id::text LIMIT 1), FALSE)`;

/** Where the batches of the kind are. With `+ 0` the index on numbers, which would search the batches of all companies, is no choice. */
function scopeOf({ isOfCompany, isOfRecord }: PageKind) {
  return {
    number: isOfCompany ? '(b.first_seq + 0)' : 'b.first_seq',
    within: isOfCompany ? OF_COMPANY : 'TRUE',
    isAskedFor: isOfRecord ? `${OF_LIST} AND ${HAS_RECORD}` : OF_LIST,
    /** A batch that has the record has one change of it at least. */
    weight: isOfRecord ? '1' : 'size',
  };
}

/**
 * Begins with the batch that holds `edge`. Without a filter a page reaches no further than `limit` numbers, but to the next batch at least: retention of
 * an earlier version has left gaps.
 */
function batchesOfPage(kind: PageKind): string {
  const { number, within, isAskedFor, weight } = scopeOf(kind);
  const isFiltered = kind.isOfCompany || kind.isOfRecord;
  const nearby = `(:resource::text IS NOT NULL OR :environment::text IS NOT NULL OR first_seq <= GREATEST(
             :edge::bigint + :limit::int, (SELECT oldest - 1 FROM kept) + :limit::int,
             (SELECT min(first_seq) FROM muster.change_batches WHERE first_seq > :edge::bigint)))`;
  return `
  WITH kept AS (
    SELECT COALESCE((SELECT min(first_seq) FROM muster.change_batches), (SELECT next_seq FROM muster.change_sequence)) AS oldest
  ), examined AS (
    SELECT first_seq, size, ${isAskedFor} AS is_asked_for
    FROM muster.change_batches b
    WHERE ${number} >= COALESCE((SELECT max(first_seq) FROM muster.change_batches WHERE first_seq <= :edge::bigint), 0)
      AND ${within} AND ${isFiltered ? 'TRUE' : nearby}
    ORDER BY ${number} LIMIT :most::bigint
  ), counted AS (
    SELECT first_seq, size, sum(${weight}) FILTER (WHERE is_asked_for AND first_seq > :edge::bigint) OVER (ORDER BY first_seq) AS changes FROM examined
  )
  SELECT (SELECT feed_id FROM muster.change_sequence) AS feed, (SELECT next_seq - 1 FROM muster.change_sequence) AS newest,
    (SELECT oldest FROM kept) AS oldest, min(first_seq) AS first,
    COALESCE(min(first_seq) FILTER (WHERE changes >= :limit::int), max(first_seq)) AS last,
    ${
      // Batches of other companies may follow the last one of this company: they were searched, unless the search stopped early.
      kind.isOfCompany
        ? `CASE WHEN count(*) = :most::bigint THEN max(first_seq + size - 1) ELSE (SELECT next_seq - 1 FROM muster.change_sequence) END`
        : `COALESCE(max(first_seq + size - 1), (SELECT next_seq - 1 FROM muster.change_sequence))`
    } AS searched, count(*) = :most::bigint AS "isCut"
  FROM counted`;
}

function batchesOfNewest(kind: PageKind): string {
  const { number, within, isAskedFor, weight } = scopeOf(kind);
  return `
  WITH examined AS (
    SELECT first_seq, size, ${isAskedFor} AS is_asked_for FROM muster.change_batches b
    WHERE ${number} < :edge::bigint AND ${within} ORDER BY ${number} DESC LIMIT :most::bigint
  ), counted AS (
    SELECT first_seq, sum(${weight}) FILTER (WHERE is_asked_for AND first_seq + size <= :edge::bigint) OVER (ORDER BY first_seq DESC) AS changes FROM examined
  )
  SELECT (SELECT feed_id FROM muster.change_sequence) AS feed, (SELECT next_seq - 1 FROM muster.change_sequence) AS newest,
    COALESCE((SELECT min(first_seq) FROM muster.change_batches), (SELECT next_seq FROM muster.change_sequence)) AS oldest,
    COALESCE(max(first_seq) FILTER (WHERE changes >= :limit::int), min(first_seq)) AS first, max(first_seq) AS last,
    min(first_seq) AS searched, count(*) = :most::bigint AS "isCut"
  FROM counted`;
}

/** Reads no more of a batch than the page takes: a deletion of many rows is one batch. */
function fromBatches(kind: PageKind): string {
  const { number, within, isAskedFor } = scopeOf(kind);
  const { isNewestFirst, isOfRecord } = kind;
  // The positions of the batch that the page may have: from `low` up to, not including, `high`.
  const positions = isNewestFirst
    ? 'SELECT 0 AS low, GREATEST(0, LEAST(b.size, :edge::bigint - b.first_seq))::int AS high'
    : 'SELECT LEAST(GREATEST(0, :edge::bigint + 1 - b.first_seq), b.size)::int AS low, b.size AS high';
  const most = isNewestFirst
    ? 'SELECT GREATEST(p.low, p.high - :limit::int) AS low, p.high'
    : 'SELECT p.low, LEAST(p.high, p.low + :limit::int) AS high';
  const slice = (array: string) => `b.${array}[s.low + 1 : s.high]`;
  const isRecord = (column: string) => (isOfRecord ? `AND ${column} = :id::text` : '');
  return `
  FROM muster.change_batches b
  CROSS JOIN LATERAL (${positions}) p
  CROSS JOIN LATERAL (${isOfRecord ? 'SELECT p.low, p.high' : most}) s
  CROSS JOIN LATERAL (
    (SELECT r.position, r.record_id, r.op, r.data, NULL::int AS start, NULL::int AS length
     FROM muster.changes r WHERE r.batch_id = b.id AND r.position >= s.low AND r.position < s.high ${isRecord('r.record_id')}
     ORDER BY r.position${isNewestFirst ? ' DESC' : ''} LIMIT :limit::int)
    UNION ALL
    SELECT s.low + w.n - 1, w.id, COALESCE(w.op, 'insert'), NULL, w.start, w.length
    FROM unnest(${['ids', 'starts', 'lengths', 'ops'].map(slice).join(', ')}) WITH ORDINALITY AS w(id, start, length, op, n)
    WHERE TRUE ${isRecord('w.id')}
  ) c
  WHERE ${number} BETWEEN :first::bigint AND :last::bigint AND ${within} AND ${isAskedFor}`;
}

/** The statements of a kind of page: its batches, the change at which it has enough bytes, and its changes. */
function statementsOf(kind: PageKind) {
  const from = fromBatches(kind);
  const order = kind.isNewestFirst ? ' DESC' : '';
  return {
    batches: named<Asked | 'most'>(kind.isNewestFirst ? batchesOfNewest(kind) : batchesOfPage(kind)),
    /** The last change for which the page has bytes, and whether more of those asked for follow it. The first one is always taken. */
    sizes: named<Asked | Ends>(`
  SELECT ${kind.isNewestFirst ? 'min' : 'max'}(seq) FILTER (WHERE upto <= ${PAGE_BYTES} OR upto = bytes)::text AS until,
    max(upto) FILTER (WHERE upto <= ${PAGE_BYTES} OR upto = bytes)::float8 AS bytes,
    COALESCE(bool_or(upto > ${PAGE_BYTES} AND upto > bytes), FALSE) AS "isCut"
  FROM (SELECT seq, bytes, sum(bytes) OVER (ORDER BY seq${order}) AS upto FROM (
    SELECT b.first_seq + c.position AS seq, COALESCE(octet_length(${DATA}), 0) AS bytes
    ${from} ORDER BY b.first_seq${order}, c.position${order} LIMIT :limit::int) sized) counted`),
    changes: named<Asked | Ends | 'until'>(`
  SELECT b.first_seq + c.position AS seq, b.resource, b.environment, b.company_id AS "companyId", c.record_id AS id, c.op, ${DATA} AS data,
    b.changed_at AS "changedAt", b.run_id AS "runId"
  ${from} AND b.first_seq + c.position ${kind.isNewestFirst ? '>=' : '<='} :until::bigint
  ORDER BY b.first_seq${order}, c.position${order} LIMIT :limit::int`),
  };
}

const STATEMENTS = new Map<string, ReturnType<typeof statementsOf>>();

/** The texts of a kind are made once. */
export function feedStatements(kind: PageKind): ReturnType<typeof statementsOf> {
  const key = JSON.stringify([kind.isNewestFirst, kind.isOfCompany, kind.isOfRecord]);
  const statements = STATEMENTS.get(key) ?? statementsOf(kind);
  STATEMENTS.set(key, statements);
  return statements;
}
