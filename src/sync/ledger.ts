import type { Transaction } from '../db/transaction.js';
import type { Prisma } from '../generated/prisma/client.js';
import type { KeptAnswer } from '../pagers/envelope.js';
import { KeyHashes } from '../pagers/hashes.js';
import { ReceivedKeys } from './pass-memory.js';
import type { WalkCheckpoint } from './walk-checkpoint.js';

/** Pages of a ledger that are read at once. */
const CHUNK = 500;

/** What the pass has received so far. Page after page: the ledger of a giant list does not fit into memory at once. */
export async function readLedger(
  tx: Transaction,
  walkId: string,
  pass: number,
  { parent }: WalkCheckpoint,
): Promise<ReceivedKeys> {
  const memory = new ReceivedKeys();
  for await (const { keys, texts, nextToken } of ledgerPages(tx, walkId, pass, parent?.firstPage)) {
    for (let n = 0; n < keys.length; n++) memory.add(keys, texts, n);
    if (nextToken !== null) memory.addTokenDigest(nextToken);
  }
  return memory;
}

export async function* ledgerPages(tx: Pick<Transaction, 'walkPage'>, walkId: string, pass: number, first = 0) {
  for (let from = first; ; ) {
    const chunk = await tx.walkPage.findMany({
      where: { walkId, pass, page: { gte: from } },
      orderBy: { page: 'asc' },
      take: CHUNK,
      select: {
        page: true,
        nextToken: true,
        answer: true,
        content: { select: { id: true, digest: true, keys: true, texts: true } },
      },
    });
    for (const { nextToken, answer, content } of chunk) {
      const { id, digest, keys, texts } = content;
      yield { id, digest, keys: new KeyHashes(words(keys)), texts: words(texts), nextToken, answer: keptAnswer(answer) };
    }
    const last = chunk.at(-1);
    if (!last) return;
    from = last.page + 1;
  }
}

function keptAnswer(answer: Prisma.JsonValue): KeptAnswer | undefined {
  return answer === null ? undefined : (answer as unknown as KeptAnswer);
}

function words(bytes: Uint8Array): Uint32Array {
  return new Uint32Array(new Uint8Array(bytes).buffer);
}
