import type { Endpoint } from '../catalogue/endpoint.js';
import { fingerprint } from '../catalogue/fingerprint.js';
import { freeBuffers } from '../core/free-buffers.js';
import type { Database } from '../db/database.js';
import type { Transaction } from '../db/transaction.js';
import { fenced, type ListKey } from '../mirror/list-fence.js';
import type { KeptAnswer, KnownContent } from '../pagers/envelope.js';
import { KeyHashes, TEXT_WORDS, TextHashes } from '../pagers/hashes.js';
import type { KnownAnswer, KnownPages } from '../pagers/known-page.js';
import { ledgerHashes, ledgerOutlines, wordsIn } from './ledger.js';
import { type PageEnds, type Trail, trailOf } from './trail.js';

/** In the place of the first key of a page without records. */
const NO_KEY = -1;

/** A page of a reference. The runs of its content have arrived. */
export interface ReferencePage extends Pick<PageEnds, 'firstKey'> {
  readonly content: KnownContent;
  readonly answer?: KeptAnswer | undefined;
}

/** The pages that a reusable walk received: what each is recognized by, and, once one is another, 30 bytes a record. */
export class Reference implements KnownPages {
  readonly readHashes: () => Promise<void>;
  readonly #contents: readonly KnownContent[];
  /** Pages without records by NO_KEY. */
  readonly #byFirstKey = new Map<number, KnownContent>();
  readonly #byRequest = new Map<string, KnownAnswer>();
  /** In ascending order. */
  #texts: Float64Array | undefined;

  /** `readHashes` lets those of all contents arrive. */
  constructor(pages: readonly ReferencePage[], readHashes: () => Promise<void>) {
    this.#contents = pages.map(({ content }) => content);
    for (const { content, firstKey, answer } of pages) {
      this.#byFirstKey.set(firstNumberOf(wordsIn(firstKey)), content);
      if (answer) this.#byRequest.set(answer.request, { answer, content });
    }
    let read: Promise<void> | undefined;
    this.readHashes = () => (read ??= readHashes());
  }

  answerTo(request: string): KnownAnswer | undefined {
    return this.#byRequest.get(request);
  }

  beginningWith({ words }: KeyHashes): KnownContent | undefined {
    return this.#byFirstKey.get(firstNumberOf(words));
  }

  hasText({ words }: TextHashes, n: number): boolean {
    this.#texts ??= this.#numbersOfTexts();
    return includes(this.#texts, numberOf(words, TEXT_WORDS * n));
  }

  /** Gives the memory of all hashes back, once nobody needs them any more. */
  free(): void {
    freeBuffers(this.#contents.flatMap(({ keys, texts }) => [...keys.memory, ...texts.memory]));
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
  for await (const outline of ledgerOutlines(db, walkId)) {
    const { content_id, records, answer, first_key, last_key } = outline;
    const content = { id: BigInt(content_id), keys: new KeyHashes(records), texts: new TextHashes(records) };
    content.texts.arriveRuns(wordsIn(outline.runs), wordsIn(outline.changes));
    pages.push({ content, answer: answer ?? undefined, firstKey: first_key, lastKey: last_key });
    keysDigest = outline.keys_digest;
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

function firstNumberOf(keys: Uint32Array): number {
  return keys.length === 0 ? NO_KEY : numberOf(keys, 0);
}

/** 53 bits of a hash, which are a whole number: two of a million differing texts look the same with a probability of 10^-10. */
function numberOf(hashes: Uint32Array, at: number): number {
  return hashes[at]! * 2 ** 21 + (hashes[at + 1]! >>> 11);
}
