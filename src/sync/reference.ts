import type { Endpoint } from '../catalogue/endpoint.js';
import { fingerprint } from '../catalogue/fingerprint.js';
import type { Database } from '../db/database.js';
import type { Transaction } from '../db/transaction.js';
import { fenced, type ListKey } from '../mirror/list-fence.js';
import type { KeptAnswer, KnownContent } from '../pagers/envelope.js';
import { KeyHashes, TEXT_WORDS, TextHashes } from '../pagers/hashes.js';
import type { KnownAnswer, KnownPages } from '../pagers/known-page.js';
import { ledgerHashes, ledgerOutlines } from './ledger.js';
import { type PageEnds, type Trail, trailOf } from './trail.js';

/** A page of a reference. */
export interface ReferencePage {
  readonly content: KnownContent;
  readonly digest: Buffer;
  readonly answer?: KeptAnswer | undefined;
}

/** The pages that a reusable walk received: what each is recognized by, and, once one is another, 30 bytes a record. */
export class Reference implements KnownPages {
  readonly readHashes: () => Promise<void>;
  readonly #contents: readonly KnownContent[];
  readonly #byDigest = new Map<string, KnownContent>();
  readonly #byRequest = new Map<string, KnownAnswer>();
  #byFirstKey: ReadonlyMap<number, KnownContent> | undefined;
  /** In ascending order. */
  #texts: Float64Array | undefined;

  /** `readHashes` lets those of all contents arrive. */
  constructor(pages: readonly ReferencePage[], readHashes: () => Promise<void>) {
    this.#contents = pages.map(({ content }) => content);
    for (const { content, digest, answer } of pages) {
      this.#byDigest.set(nameOf(digest), content);
      if (answer) this.#byRequest.set(answer.request, { answer, content, digest });
    }
    let read: Promise<void> | undefined;
    this.readHashes = () => (read ??= readHashes());
  }

  withDigest(digest: Buffer): KnownContent | undefined {
    return this.#byDigest.get(nameOf(digest));
  }

  answerTo(request: string): KnownAnswer | undefined {
    return this.#byRequest.get(request);
  }

  beginningWith(key: KeyHashes): KnownContent | undefined {
    this.#byFirstKey ??= new Map(
      this.#contents.filter(({ keys }) => keys.length > 0).map((content) => [numberOf(content.keys.words, 0), content]),
    );
    return this.#byFirstKey.get(numberOf(key.words, 0));
  }

  hasText({ words }: TextHashes, n: number): boolean {
    this.#texts ??= this.#numbersOfTexts();
    return includes(this.#texts, numberOf(words, TEXT_WORDS * n));
  }

  #numbersOfTexts(): Float64Array {
    const numbers = new Float64Array(this.#contents.reduce((sum, { texts }) => sum + texts.length, 0));
    let next = 0;
    for (const { texts } of this.#contents) {
      for (let n = 0; n < texts.length; n += 1) numbers[next++] = numberOf(texts.words, TEXT_WORDS * n);
    }
    numbers.sort();
    return numbers;
  }
}

/**
 * The pages of the list's reusable walk, and the trail that they make, if they do. Reading their hashes throws `fenced` when somebody
 * has taken the list and cleared them since.
 */
export async function readReference(
  db: Pick<Database, 'pool'>,
  list: ListKey,
  walkId: string,
): Promise<{ readonly reference: Reference; readonly trail: Trail | undefined }> {
  const pages: (ReferencePage & PageEnds)[] = [];
  let keysDigest: string | undefined;
  for await (const { content_id, records, digest, answer, first_key, last_key, keys_digest } of ledgerOutlines(db, walkId)) {
    const content = { id: BigInt(content_id), keys: new KeyHashes(records), texts: new TextHashes(records) };
    pages.push({ content, digest, answer: answer ?? undefined, firstKey: first_key, lastKey: last_key });
    keysDigest = keys_digest;
  }
  const reference = new Reference(pages, async () => {
    let n = 0;
    for await (const { keys, texts, changes } of ledgerHashes(db, walkId)) {
      pages[n]?.content.keys.arrive(keys);
      pages[n]?.content.texts.arrive(texts, changes);
      n += 1;
    }
    if (n !== pages.length) throw fenced(list, 'the ledger of its last walk is gone');
  });
  return { reference, trail: keysDigest === undefined ? undefined : trailOf(pages, keysDigest) };
}

/**
 * The walk that one opened at this epoch may go by: reusable, the very last to write to the list, and of the same catalogue
 * entry. Then every record it received stands in the mirror with the text it had. By a subselect and not by a join, for which
 * PostgreSQL may read all walks.
 */
export async function findReference(
  tx: Transaction,
  { environment, companyId, resource }: ListKey,
  epoch: bigint,
  endpoint: Endpoint,
): Promise<string | null> {
  const [row] = await tx.$queryRaw<{ id: string }[]>`
    SELECT id FROM muster.walks
    WHERE id = (
      SELECT verified_walk_id FROM muster.lists
      WHERE environment = ${environment} AND company_id = ${companyId}::uuid AND resource = ${resource}
    ) AND reusable AND epoch = ${epoch - 1n} AND fingerprint = ${fingerprint(endpoint)}`;
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
