import type { Transaction } from '../db/transaction.js';
import type { KeptAnswer } from '../pagers/envelope.js';
import { KeyHashes } from '../pagers/hashes.js';
import { ReceivedKeys } from './pass-memory.js';
import type { WalkCheckpoint } from './walk-checkpoint.js';

/** Pages of a ledger that are read at once. */
const CHUNK = 500;

/** What the pass has received so far. Page after page: the ledger of a giant list does not fit into memory at once. */
export async function readLedger(tx: Transaction, walkId: string, { parent }: WalkCheckpoint): Promise<ReceivedKeys> {
  const memory = new ReceivedKeys();
  for await (const { keys, texts, nextToken } of ledgerPages(tx, walkId, parent?.firstPage)) {
    for (let n = 0; n < keys.length; n++) memory.add(keys, texts, n);
    if (nextToken !== null) memory.addTokenDigest(nextToken);
  }
  return memory;
}

interface LedgerRow {
  readonly page: number;
  readonly nextToken: string | null;
  readonly answer: KeptAnswer | null;
  readonly id: bigint;
  readonly digest: Uint8Array;
  readonly keys: Uint8Array;
  readonly texts: Uint8Array;
}

/** The pages of the walk's newest pass. */
export async function* ledgerPages(tx: Pick<Transaction, '$queryRaw'>, walkId: string, first = 0) {
  for (let from = first; ; ) {
    const chunk = await tx.$queryRaw<LedgerRow[]>`
      SELECT p.page, p.next_token AS "nextToken", p.answer, c.id, c.digest, c.keys, c.texts
      FROM muster.walks w JOIN muster.walk_pages p ON p.walk_id = w.id AND p.pass = w.pass
           JOIN muster.page_contents c ON c.id = p.content_id
      WHERE w.id = ${walkId}::uuid AND p.page >= ${from} ORDER BY p.page LIMIT ${CHUNK}`;
    for (const { nextToken, answer, id, digest, keys, texts } of chunk)
      yield { id, digest, keys: new KeyHashes(words(keys)), texts: words(texts), nextToken, answer: answer ?? undefined };
    if (chunk.length < CHUNK) return;
    from = chunk.at(-1)!.page + 1;
  }
}

function words(bytes: Uint8Array): Uint32Array {
  return new Uint32Array(new Uint8Array(bytes).buffer);
}
