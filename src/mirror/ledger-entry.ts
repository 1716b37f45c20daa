/** What the ledger keeps of a page, beside its number: which records it held and, where somebody wants to recognize it again, their texts' hashes. */
export type LedgerEntry =
  /** The page has other records than any that the ledger knows. */
  | {
      readonly kind: 'new';
      /** Keys of all records in the order received, and the two words of each key's hash. */
      readonly ids: readonly string[];
      readonly keys: Uint32Array;
      /** Hashes of the records' texts (src/unchanged); absent where nobody wants them. */
      readonly rowHashes?: Uint32Array | undefined;
    }
  /** The records are those of an earlier page, in its order; some of their texts are others. */
  | { readonly kind: 'same-keys'; readonly keysId: bigint; readonly rowHashes: Uint32Array }
  /** The page is an earlier one in every record. */
  | { readonly kind: 'same'; readonly snapshotId: bigint };

/** The ledger's rows of several pages, column by column, as one statement takes them. Bytes stand together in one value: an array of them would be sent as hexadecimal digits. */
export interface LedgerColumns {
  /** Of pages that are an earlier one in everything, and of those that have its records; null for all others. */
  readonly snapshotIds: readonly (bigint | null)[];
  readonly keysIds: readonly (bigint | null)[];
  /** Keys of all new pages. A key with which one page ends and the next begins stands there once. */
  readonly keys: readonly string[];
  /** Places in `keys` of each page's first and last key, from 1. */
  readonly firstIds: readonly number[];
  readonly lastIds: readonly number[];
  /** Hashes of all pages, and where in them each page's own begin, from 1, and how many bytes they take; null for none. */
  readonly hashes: Buffer;
  readonly keysAt: readonly number[];
  readonly keysSizes: readonly (number | null)[];
  readonly rowsAt: readonly number[];
  readonly rowsSizes: readonly (number | null)[];
}

/** The one encoder of what the ledger says of pages. */
export function ledgerColumns(entries: readonly LedgerEntry[]): LedgerColumns {
  const snapshotIds: (bigint | null)[] = [];
  const keysIds: (bigint | null)[] = [];
  const keys: string[] = [];
  const firstIds: number[] = [];
  const lastIds: number[] = [];
  const hashes: Buffer[] = [];
  const keysAt: number[] = [];
  const keysSizes: (number | null)[] = [];
  const rowsAt: number[] = [];
  const rowsSizes: (number | null)[] = [];
  let next = 1;
  const append = (words: Uint32Array | undefined): number | null => {
    if (!words) return null;
    hashes.push(Buffer.from(words.buffer, words.byteOffset, words.byteLength));
    next += words.byteLength;
    return words.byteLength;
  };
  for (const entry of entries) {
    snapshotIds.push(entry.kind === 'same' ? entry.snapshotId : null);
    keysIds.push(entry.kind === 'same-keys' ? entry.keysId : null);
    const own = entry.kind === 'new' ? entry.ids : [];
    const overlap = own.length > 0 && own[0] === keys.at(-1) ? 1 : 0;
    firstIds.push(keys.length + 1 - overlap);
    for (let n = overlap; n < own.length; n += 1) keys.push(own[n]!);
    lastIds.push(keys.length);
    keysAt.push(next);
    keysSizes.push(append(entry.kind === 'new' ? entry.keys : undefined));
    rowsAt.push(next);
    rowsSizes.push(append(entry.kind === 'same' ? undefined : entry.rowHashes));
  }
  return { snapshotIds, keysIds, keys, firstIds, lastIds, hashes: Buffer.concat(hashes), keysAt, keysSizes, rowsAt, rowsSizes };
}
