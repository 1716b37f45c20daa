import type { Database } from '../db/database.js';
import type { KeptAnswer } from '../pagers/envelope.js';
import { KeyHashes } from '../pagers/hashes.js';
import { ReceivedKeys } from './pass-memory.js';
import type { WalkCheckpoint } from './walk-checkpoint.js';

/** Pages of a ledger that are read at once. */
const CHUNK = 500;

/** What the pass has received so far. Page after page: the ledger of a giant list does not fit into memory at once. */
export async function readLedger(db: Pick<Database, 'pool'>, walkId: string, { parent }: WalkCheckpoint): Promise<ReceivedKeys> {
  const memory = new ReceivedKeys();
  for await (const { keys, texts, nextToken } of ledgerPages(db, walkId, parent?.firstPage)) {
    for (let n = 0; n < keys.length; n++) memory.add(keys, texts, n);
    if (nextToken !== null) memory.addTokenDigest(nextToken);
  }
  return memory;
}

interface LedgerRow {
  readonly page: number;
  readonly nextToken: string | null;
  readonly answer: KeptAnswer | null;
  readonly id: string;
  readonly digest: Buffer;
  readonly keys: Buffer;
  readonly texts: Buffer;
}

const LEDGER = `
SELECT p.page, p.next_token AS "nextToken", p.answer, c.id, c.digest, k.keys, c.texts
FROM muster.walks w JOIN muster.walk_pages p ON p.walk_id = w.id AND p.pass = w.pass
     JOIN muster.page_contents c ON c.id = p.content_id JOIN muster.page_keys k ON k.id = c.keys_id
WHERE w.id = $1 AND p.page >= $2 ORDER BY p.page LIMIT ${CHUNK}`;

/** The pages of the walk's newest pass. Past Prisma, which would make JSON of them first. */
export async function* ledgerPages({ pool }: Pick<Database, 'pool'>, walkId: string, first = 0) {
  for (let from = first; ; ) {
    const { rows } = await pool.query<LedgerRow>({ name: 'ledger', text: LEDGER, values: [walkId, from] });
    for (const { nextToken, answer, id, digest, keys, texts } of rows)
      yield {
        id: BigInt(id),
        digest,
        keys: new KeyHashes(words(keys)),
        texts: words(texts),
        nextToken,
        answer: answer ?? undefined,
      };
    if (rows.length < CHUNK) return;
    from = rows.at(-1)!.page + 1;
  }
}

function words(bytes: Buffer): Uint32Array {
  return new Uint32Array(new Uint8Array(bytes).buffer);
}
