import type { Database } from '../db/database.js';
import type { KeptAnswer } from '../pagers/envelope.js';
import { KeyHashes, TextHashes } from '../pagers/hashes.js';
import { ReceivedKeys } from './pass-memory.js';
import type { WalkCheckpoint } from './walk-checkpoint.js';

/** Pages of a ledger that are read at once. */
const CHUNK = 500;

/** What the pass has received so far. Page after page: the ledger of a giant list does not fit into memory at once. */
export async function readLedger(db: Pick<Database, 'pool'>, walkId: string, { parent }: WalkCheckpoint): Promise<ReceivedKeys> {
  const memory = new ReceivedKeys();
  for await (const { next_token, ...page } of ledgerHashes(db, walkId, parent?.firstPage)) {
    const records = page.keys.length / 2;
    const hashes = { keys: new KeyHashes(records, page.keys), texts: new TextHashes(records, page.texts) };
    for (let n = 0; n < records; n++) memory.add(hashes, n);
    if (next_token !== null) memory.addTokenDigest(next_token);
  }
  return memory;
}

const PAGES = `
FROM muster.walks w JOIN muster.walk_pages p ON p.walk_id = w.id AND p.pass = w.pass
JOIN muster.page_contents c ON c.id = p.content_id JOIN muster.page_keys k ON k.id = c.keys_id
WHERE w.id = $1 AND p.page >= $2 ORDER BY p.page LIMIT ${CHUNK}`;

/** What a page is recognized by, and what it adds to those before it: a twentieth of what its hashes take. */
export interface PageOutline {
  readonly page: number;
  readonly content_id: string;
  readonly digest: Buffer;
  readonly answer: KeptAnswer | null;
  readonly records: number;
  /** The first and the last key; empty where the page has none. */
  readonly first_key: Buffer;
  readonly last_key: Buffer;
  /** Digest of all keys of the walk: the same on every page. */
  readonly keys_digest: string;
}

const OUTLINES = `
SELECT p.page, c.id AS content_id, c.digest, p.answer, octet_length(k.keys) / 8 AS records,
  substr(k.keys, 1, 8) AS first_key, substr(k.keys, greatest(1, octet_length(k.keys) - 7)) AS last_key, w.keys_digest ${PAGES}`;

interface HashesRow {
  readonly page: number;
  readonly next_token: string | null;
  readonly keys: Buffer;
  readonly texts: Buffer;
}

const HASHES = `SELECT p.page, p.next_token, k.keys, c.texts ${PAGES}`;

/** The pages of the walk's newest pass, in the order received. */
export function ledgerOutlines(db: Pick<Database, 'pool'>, walkId: string): AsyncIterable<PageOutline> {
  return readPages<PageOutline>(db, 'ledger_outlines', OUTLINES, walkId, 0);
}

/** The hashes of these pages. */
export async function* ledgerHashes(db: Pick<Database, 'pool'>, walkId: string, first = 0) {
  for await (const { keys, texts, ...row } of readPages<HashesRow>(db, 'ledger_hashes', HASHES, walkId, first))
    yield { ...row, keys: words(keys), texts: words(texts) };
}

/** Past Prisma, which would make JSON of them first. */
async function* readPages<Row extends { readonly page: number }>(
  { pool }: Pick<Database, 'pool'>,
  name: string,
  text: string,
  walkId: string,
  first: number,
): AsyncIterable<Row> {
  for (let from = first; ; ) {
    const { rows } = await pool.query<Row>({ name, text, values: [walkId, from] });
    yield* rows;
    if (rows.length < CHUNK) return;
    from = rows.at(-1)!.page + 1;
  }
}

/** The same memory, where it begins as words must. */
function words(bytes: Buffer): Uint32Array {
  const aligned = bytes.byteOffset % Uint32Array.BYTES_PER_ELEMENT === 0 ? bytes : new Uint8Array(bytes);
  return new Uint32Array(aligned.buffer, aligned.byteOffset, aligned.byteLength / Uint32Array.BYTES_PER_ELEMENT);
}
