import pg from 'pg';
import { binaryRows } from '../db/binary-rows.js';
import type { Database } from '../db/database.js';
import type { KeptAnswer } from '../pagers/envelope.js';
import { KeyHashes, TEXT_WORDS, TextHashes } from '../pagers/hashes.js';
import { ReceivedKeys } from './pass-memory.js';
import type { WalkCheckpoint } from './walk-checkpoint.js';

/** Of the hash of one text. */
const TEXT_BYTES = TEXT_WORDS * Uint32Array.BYTES_PER_ELEMENT;
/** Pages of a ledger that are read at once. */
const CHUNK = 500;

/** What the pass has received so far. Page after page: the ledger of a giant list does not fit into memory at once. */
export async function readLedger(db: Pick<Database, 'pool'>, walkId: string, { parent }: WalkCheckpoint): Promise<ReceivedKeys> {
  const memory = new ReceivedKeys();
  for await (const { nextToken, ...page } of ledgerHashes(db, walkId, parent?.firstPage)) {
    const records = page.keys.length / 2;
    const hashes = { keys: new KeyHashes(records, page.keys), texts: new TextHashes(records) };
    hashes.texts.arrive(page.texts, page.changes);
    for (let n = 0; n < records; n++) memory.add(hashes, n);
    if (nextToken !== undefined) memory.addTokenDigest(nextToken);
  }
  return memory;
}

/** Pages of walk $1 from page $2 on. */
const PAGES = `
FROM muster.walks w JOIN muster.walk_pages p ON p.walk_id = w.id AND p.pass = w.pass
JOIN muster.page_contents c ON c.id = p.content_id JOIN muster.page_keys k ON k.id = c.keys_id
WHERE w.id = $1 AND p.page >= $2 ORDER BY p.page LIMIT ${CHUNK}`;

/** What a page is recognized by, and what it adds to those before it: a twentieth of what its hashes take. */
export interface PageOutline {
  readonly page: number;
  readonly content_id: string;
  readonly answer: KeptAnswer | null;
  readonly records: number;
  /** The first and the last key; empty where the page has none. */
  readonly first_key: Buffer;
  readonly last_key: Buffer;
  /** The hashes of its runs of records, and what of all its texts is another (TextHashes.arriveRuns). */
  readonly runs: Buffer;
  readonly changes: Buffer;
  /** Digest of all keys of the walk: the same on every page. */
  readonly keys_digest: string;
}

/** Texts of a page, or those that it shares with another but for its changes. */
const TEXTS = 'COALESCE((SELECT texts FROM muster.page_contents WHERE id = c.base_id), c.texts)';
const CHANGES = `CASE WHEN c.base_id IS NULL THEN '' ELSE c.texts END`;

const OUTLINES = `
SELECT p.page, c.id AS content_id, p.answer, octet_length(k.keys) / 8 AS records,
  substr(k.keys, 1, 8) AS first_key, substr(k.keys, greatest(1, octet_length(k.keys) - 7)) AS last_key,
  substr(${TEXTS}, octet_length(k.keys) / 8 * ${TEXT_BYTES} + 1) AS runs, ${CHANGES} AS changes, w.keys_digest ${PAGES}`;

const HASHES = `
SELECT p.page, p.next_token, k.keys, ${TEXTS}, ${CHANGES} ${PAGES}`;

/** The pages of the walk's newest pass, in the order received. Past Prisma, which would make JSON of them first. */
export async function* ledgerOutlines({ pool }: Pick<Database, 'pool'>, walkId: string): AsyncGenerator<PageOutline> {
  for (let from = 0; ; ) {
    const query = { name: 'ledger_outlines', text: OUTLINES, values: [walkId, from] };
    const { rows } = await pool.query<PageOutline>(query);
    yield* rows;
    if (rows.length < CHUNK) return;
    from = rows.at(-1)!.page + 1;
  }
}

interface PageWords {
  /** What the ledger keeps of the token that led on. */
  readonly nextToken: string | undefined;
  readonly keys: Uint32Array;
  readonly texts: Uint32Array;
  /** Those of the texts that are others (TextHashes.arrive). */
  readonly changes: Uint32Array;
}

/** The hashes of these pages. */
export async function* ledgerHashes({ pool }: Pick<Database, 'pool'>, walkId: string, first = 0): AsyncGenerator<PageWords> {
  for (let from = first, rows = CHUNK; rows === CHUNK; ) {
    rows = 0;
    const query = HASHES.replace('$1', pg.escapeLiteral(walkId)).replace('$2', String(from));
    for await (const [page, nextToken, keys, texts, changes] of binaryRows(pool, query)) {
      yield { nextToken: nextToken?.toString(), keys: wordsIn(keys!), texts: wordsIn(texts!), changes: wordsIn(changes!) };
      from = page!.readInt32BE() + 1;
      rows += 1;
    }
  }
}

/** Apart from the memory that the bytes share with others, and where words may begin. */
export function wordsIn(bytes: Buffer): Uint32Array {
  return new Uint32Array(new Uint8Array(bytes).buffer);
}
