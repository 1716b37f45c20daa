/** The ledger's entry for a page: its records, and the hashes of their texts where the page is to be recognized again. */
export type LedgerEntry =
  /** The page has other records than any that the ledger knows. */
  | {
      readonly kind: 'new';
      /** Keys of all records in the order received, and the two words of each key's hash. */
      readonly ids: readonly string[];
      readonly keys: Uint32Array;
      /** Hashes of the records' texts (src/unchanged); absent where the page is not to be recognized. */
      readonly rowHashes?: Uint32Array | undefined;
    }
  /** The page has the records of an earlier page, in its order; some of their texts differ. */
  | { readonly kind: 'same-keys'; readonly keysId: bigint; readonly rowHashes: Uint32Array }
  /** The page equals an earlier one in every record. */
  | { readonly kind: 'same'; readonly snapshotId: bigint };

/** The ledger's rows of several pages, by columns, for one statement. All bytes are in one value: an array of bytes would be sent as hexadecimal digits. */
export interface LedgerColumns {
  /** The snapshot of a page of kind `same`, and the keys of one of kind `same-keys`; null for all others. */
  readonly snapshotIds: readonly (bigint | null)[];
  readonly keysIds: readonly (bigint | null)[];
  /** Keys of all new pages. A key that ends one page and begins the next appears once. */
  readonly keys: readonly string[];
  /** Places in `keys` of each page's first and last key, counted from 1. */
  readonly firstIds: readonly number[];
  readonly lastIds: readonly number[];
  /** Hashes of all pages; the place of each page's own, counted from 1, and their bytes; null for none. */
  readonly hashes: Buffer;
  readonly keysAt: readonly number[];
  readonly keysSizes: readonly (number | null)[];
  readonly rowsAt: readonly number[];
  readonly rowsSizes: readonly (number | null)[];
}

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
