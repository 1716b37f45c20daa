import type { Endpoint } from '../catalogue/endpoint.js';
import { fingerprint } from '../catalogue/fingerprint.js';
import type { Database } from '../db/database.js';
import type { Transaction } from '../db/transaction.js';
import type { ListKey } from '../mirror/list-fence.js';
import type { KeptAnswer, KnownContent } from '../pagers/envelope.js';
import type { KeyHashes } from '../pagers/hashes.js';
import type { KnownAnswer, KnownPages } from '../pagers/known-page.js';
import { TEXT_WORDS } from '../pagers/record-digests.js';
import { ledgerPages } from './ledger.js';

/** The pages that a reusable walk received: 20 bytes a record, and 8 more once single records are looked for. */
export class Reference implements KnownPages {
  readonly #byDigest = new Map<string, KnownContent>();
  readonly #byFirstKey = new Map<number, KnownContent>();
  readonly #byRequest = new Map<string, KnownAnswer>();
  /** In ascending order. */
  #texts: Float64Array | undefined;

  add(digest: Uint8Array, content: KnownContent, answer?: KeptAnswer): void {
    this.#byDigest.set(nameOf(digest), content);
    if (answer) this.#byRequest.set(answer.request, { answer, content, digest: Buffer.from(digest) });
    if (content.keys.length > 0) this.#byFirstKey.set(numberOf(content.keys.words, 0), content);
  }

  withDigest(digest: Buffer): KnownContent | undefined {
    return this.#byDigest.get(nameOf(digest));
  }

  beginningWith(key: KeyHashes): KnownContent | undefined {
    return this.#byFirstKey.get(numberOf(key.words, 0));
  }

  answerTo(request: string): KnownAnswer | undefined {
    return this.#byRequest.get(request);
  }

  hasText(texts: Uint32Array, n: number): boolean {
    this.#texts ??= this.#numbersOfTexts();
    return includes(this.#texts, numberOf(texts, TEXT_WORDS * n));
  }

  #numbersOfTexts(): Float64Array {
    const pages = [...this.#byDigest.values()];
    const numbers = new Float64Array(pages.reduce((sum, { texts }) => sum + texts.length / TEXT_WORDS, 0));
    let next = 0;
    for (const { texts } of pages) for (let at = 0; at < texts.length; at += TEXT_WORDS) numbers[next++] = numberOf(texts, at);
    numbers.sort();
    return numbers;
  }
}

export async function readReference(db: Pick<Database, 'pool'>, walkId: string): Promise<Reference> {
  const reference = new Reference();
  for await (const { digest, answer, ...content } of ledgerPages(db, walkId)) reference.add(digest, content, answer);
  return reference;
}

/**
 * The walk that one opened at this epoch may go by: reusable, the very last to write to the list, and of the same catalogue
 * entry. Then every record it received stands in the mirror with the text it had.
 */
export async function findReference(
  tx: Transaction,
  { environment, companyId, resource }: ListKey,
  epoch: bigint,
  endpoint: Endpoint,
): Promise<string | null> {
  const [row] = await tx.$queryRaw<{ id: string }[]>`
    SELECT w.id FROM muster.lists l JOIN muster.walks w ON w.id = l.verified_walk_id
    WHERE l.environment = ${environment} AND l.company_id = ${companyId}::uuid AND l.resource = ${resource}
      AND w.reusable AND w.epoch = ${epoch - 1n} AND w.fingerprint = ${fingerprint(endpoint)}`;
  return row?.id ?? null;
}

/** Binary search. */
function includes(ascending: Float64Array, number: number): boolean {
  let [low, high] = [0, ascending.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (ascending[middle]! < number) low = middle + 1;
    else high = middle;
  }
  return ascending[low] === number;
}

function nameOf(digest: Uint8Array): string {
  return Buffer.from(digest).toString('base64');
}

/** 53 bits of a hash, which are a whole number: two of a million differing texts look the same with a probability of 10^-10. */
function numberOf(hashes: Uint32Array, at: number): number {
  return hashes[at]! * 2 ** 21 + (hashes[at + 1]! >>> 11);
}
