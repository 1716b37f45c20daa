// Finding living records of a company for a person: by id, by the beginning of an id, or by a text in the record. No index knows the texts, so a search
// reads rows in the order of ids, piece by piece, and its cursor says where the next call goes on.
import type { Clock } from '../core/clock.js';
import type { CompanyKey } from '../core/company.js';
import { MusterError } from '../core/errors.js';
import type { Database } from '../db/connection/database.js';
import type { Transaction } from '../db/connection/transaction.js';
import { readByIndex } from '../db/statements/by-index.js';
import { cursorAt, readCursor } from '../db/statements/cursor.js';
import { foldText, patternOf } from '../db/statements/folding.js';
import { isOf } from '../db/tables/connections.js';
import { LargerPage, PAGE_BYTES } from '../db/tables/feed.js';
import { Prisma } from '../generated/prisma/client.js';
import { tableOf } from './mirror-table.js';

export interface RecordSearch extends CompanyKey {
  /** The lists to search, in this order. */
  readonly resources: readonly string[];
  /** Undefined: every record, in the order of ids. */
  readonly text?: string | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
  /** Bytes for which the reader has memory, at least `PAGE_BYTES`. */
  readonly mostBytes: number;
}

export interface FoundRecord {
  readonly resource: string;
  readonly id: string;
  /** JSON as text, with every digit of its numbers. */
  readonly data: string;
}

export interface FoundRecords {
  readonly rows: readonly FoundRecord[];
  /** Present while more records may match, even after an empty page. */
  readonly nextCursor?: string;
}

/** A search goes through these in this order; a record is found by the first that applies. */
const STAGES = ['exact', 'beginning', 'text'] as const;
type Stage = (typeof STAGES)[number] | 'all';

/** Where a search goes on: after this id of the list, in this stage. */
interface Place {
  readonly stage: Stage;
  readonly resource: string;
  readonly after: string;
}

/** Rows that one statement reads the texts of. */
const PIECE = 10_000;
/** Candidates of one statement. Their data comes with them, up to so many bytes; the rest is read record by record. */
const CANDIDATES = 100;
const SENT_BYTES = 1024 * 1024;
/** A call reads no further piece after this time: its caller goes on with the cursor. */
const CALL_MS = 3_000;

/** Throws `invalid_request` for a cursor that no answer gave, and `LargerPage`. */
export function searchRecords(
  { db, clock }: { readonly db: Pick<Database, 'prisma'>; readonly clock: Pick<Clock, 'monotonic'> },
  search: RecordSearch,
): Promise<FoundRecords> {
  const { text = '', limit, mostBytes } = search;
  const words = foldText(text).split(/\s+/).filter(Boolean);
  const places = placesOf(search, words);
  const endsAt = clock.monotonic() + CALL_MS;
  return readByIndex(db, async (tx) => {
    const rows: FoundRecord[] = [];
    let room = PAGE_BYTES;
    for (const place of places) {
      for (let at: Place | undefined = place; at !== undefined; ) {
        if (clock.monotonic() >= endsAt) return { rows, nextCursor: cursorOf(at) };
        const { candidates, next } = await readPiece(tx, search, at, words);
        for (const { id, bytes, data: sent } of candidates) {
          if (rows.length === limit || (rows.length > 0 && bytes > room)) return { rows, nextCursor: cursorOf(at) };
          if (bytes > mostBytes) throw new LargerPage(bytes);
          const data = sent ?? (await readData(tx, search, { resource: place.resource, id }));
          if (data !== undefined && (place.stage !== 'text' || hasWords([id, ...scalarsOf(data)], words))) {
            rows.push({ resource: place.resource, id, data });
            room -= bytes;
          }
          at = placeAfter(at, id);
        }
        at = next;
      }
    }
    return { rows };
  });
}

function placeAfter({ stage, resource }: Place, after: string): Place {
  return { stage, resource, after };
}

/** Where the search begins, and every place that follows. */
function placesOf({ resources, text, cursor }: RecordSearch, words: readonly string[]): Place[] {
  const stages: readonly Stage[] = text === undefined ? ['all'] : STAGES.slice(0, words.length > 0 ? 3 : 2);
  const places = stages.flatMap((stage) => resources.map((resource) => ({ stage, resource, after: '' })));
  if (cursor === undefined) return places;
  const [stage, resource, after] = JSON.parse(readCursor(cursor, CURSOR)) as [Stage, string, string];
  const begun = places.findIndex((place) => place.stage === stage && place.resource === resource);
  // The cursor of another search, or of another catalogue.
  if (begun < 0) throw new MusterError('invalid_request', 'The cursor is of another search: leave it out to begin again.');
  return [{ ...places[begun]!, after }, ...places.slice(begun + 1)];
}

/** Every text that this takes is JSON, and PostgreSQL takes no NUL. */
const CURSOR = new RegExp(
  String.raw`^\["(exact|beginning|text|all)","[a-z][a-z0-9_]*","([^"\\\u0000-\u001f]|\\(["\\/bfnrt]|u(?!0000)[0-9a-f]{4}))*"\]$`,
);

function cursorOf({ stage, resource, after }: Place): string {
  return cursorAt(JSON.stringify([stage, resource, after]));
}

interface Candidate {
  readonly id: string;
  readonly bytes: number;
  /** Null where the statement would send too many bytes. */
  readonly data: string | null;
}

async function readPiece(
  tx: Transaction,
  search: RecordSearch,
  place: Place,
  words: readonly string[],
): Promise<{ candidates: readonly Candidate[]; next: Place | undefined }> {
  const until = place.stage === 'text' ? await endOfPiece(tx, search, place) : undefined;
  const conditions = [
    Prisma.sql`${isOf(search)} AND id > ${place.after} AND deleted_at IS NULL`,
    ...(until === undefined ? [] : [Prisma.sql`id <= ${until}`]),
    ...conditionsOf(place.stage, search.text ?? ''),
  ];
  const candidates = await tx.$queryRaw<Candidate[]>`
    SELECT id, bytes::float8 AS bytes, CASE WHEN sum(bytes) OVER (ORDER BY id) <= ${SENT_BYTES}::int THEN data::text END AS data FROM (
      SELECT id, data, octet_length(data::text) AS bytes FROM (
        SELECT id, data, ${place.stage === 'text' ? HAYSTACK : NO_HAYSTACK} AS haystack FROM ${tableOf(place)}
        WHERE ${Prisma.join(conditions, ' AND ')} ORDER BY id OFFSET 0) row
      WHERE ${place.stage === 'text' ? hasAll(words) : Prisma.sql`TRUE`} ORDER BY id LIMIT ${CANDIDATES}::int) t ORDER BY id`;
  const isCut = candidates.length === CANDIDATES;
  const after = isCut ? candidates.at(-1)!.id : until;
  return { candidates, next: after === undefined ? undefined : { ...place, after } };
}

/** The texts of a record, of which the id is one. It is made once, however many words are asked for. */
const HAYSTACK = Prisma.sql`data::text || ' ' || to_json(id)::text`;
const NO_HAYSTACK = Prisma.sql`NULL::text`;

function hasAll(words: readonly string[]): Prisma.Sql {
  return Prisma.join(
    words.map((word) => Prisma.sql`haystack ~ ${patternOf(word)}`),
    ' AND ',
  );
}

/** The last id of the piece; undefined where the piece is the last one. */
async function endOfPiece(tx: Transaction, search: RecordSearch, place: Place): Promise<string | undefined> {
  const [row] = await tx.$queryRaw<{ id: string }[]>`
    SELECT id FROM ${tableOf(place)} WHERE ${isOf(search)} AND id > ${place.after} ORDER BY id OFFSET ${PIECE}::int LIMIT 1`;
  return row?.id;
}

/** No code point of Unicode is greater, so that an id with a beginning is less than the beginning followed by it. */
const LAST_LETTER = '\u{10ffff}';

function conditionsOf(stage: Stage, text: string): Prisma.Sql[] {
  switch (stage) {
    case 'all':
      return [];
    case 'exact':
      return [Prisma.sql`id = ${text}`];
    case 'beginning':
      return [Prisma.sql`id > ${text} AND id < ${text + LAST_LETTER}`];
    case 'text':
      return [Prisma.sql`NOT starts_with(id, ${text})`];
  }
}

async function readData(tx: Transaction, search: RecordSearch, { resource, id }: Pick<FoundRecord, 'resource' | 'id'>) {
  const [row] = await tx.$queryRaw<{ data: string }[]>`
    SELECT data::text AS data FROM ${tableOf({ resource })} WHERE ${isOf(search)} AND id = ${id} AND deleted_at IS NULL`;
  return row?.data;
}

function hasWords(texts: readonly string[], words: readonly string[]): boolean {
  const folded = texts.map(foldText);
  return words.every((word) => folded.some((text) => text.includes(word)));
}

/** A text with what follows it where it names a member, or a number. */
const TOKEN = /("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|-?\d[\d.eE+-]*/g;

/** The texts and numbers of a JSON text, without the names of members. Numbers keep their digits. */
function scalarsOf(json: string): string[] {
  return [...json.matchAll(TOKEN)]
    .filter(([, , colon]) => colon === undefined)
    .map(([token, text]) => (text === undefined ? token : (JSON.parse(text) as string)));
}
