import { createHash } from 'node:crypto';
import type { PassMemory } from '../pagers/pager.js';

/**
 * The keys and page tokens that one pass has received: 64-bit hashes in open addressing, 16 bytes a record at most, whatever
 * the length of its id. Two of a million keys collide with a probability of 3 in 10^8; a collision would make the distinct
 * count fall short of the total, so it costs another pass and never hides a record.
 */
export class ReceivedKeys implements PassMemory {
  /** The two halves of each hash; 0 and 0 = free. */
  #high = new Uint32Array(1024);
  #low = new Uint32Array(1024);
  #size = 0;
  #sum: readonly [high: number, low: number] = [0, 0];
  readonly #tokens = new Set<string>();

  get size(): number {
    return this.#size;
  }

  /** The same for the same set of keys, in whatever order they came. */
  get digest(): string {
    return [this.#size, ...this.#sum].map((part) => part.toString(16)).join(':');
  }

  hasKey(key: string): boolean {
    const slot = this.#find(...hashKey(key));
    return this.#high[slot] !== 0 || this.#low[slot] !== 0;
  }

  hasToken(token: string): boolean {
    return this.#tokens.has(digestToken(token));
  }

  /** Returns whether the key is new to this pass. */
  addKey(key: string): boolean {
    const [high, low] = hashKey(key);
    const slot = this.#find(high, low);
    if (this.#high[slot] === high && this.#low[slot] === low) return false;
    this.#put(slot, high, low);
    this.#size += 1;
    this.#sum = [(this.#sum[0] + high) >>> 0, (this.#sum[1] + low) >>> 0];
    if (this.#size * 2 > this.#low.length) this.#grow();
    return true;
  }

  addTokenDigest(digest: string): void {
    this.#tokens.add(digest);
  }

  /** The slot that holds the hash, or the free one where it belongs. */
  #find(high: number, low: number): number {
    const mask = this.#low.length - 1;
    let slot = low & mask;
    while ((this.#low[slot] !== low || this.#high[slot] !== high) && (this.#low[slot] !== 0 || this.#high[slot] !== 0)) {
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  #put(slot: number, high: number, low: number): void {
    this.#high[slot] = high;
    this.#low[slot] = low;
  }

  #grow(): void {
    const [high, low] = [this.#high, this.#low];
    this.#high = new Uint32Array(high.length * 2);
    this.#low = new Uint32Array(low.length * 2);
    for (let slot = 0; slot < low.length; slot++) {
      if (high[slot] !== 0 || low[slot] !== 0) this.#put(this.#find(high[slot]!, low[slot]!), high[slot]!, low[slot]!);
    }
  }
}

/** What the ledger keeps of a page token: enough to see it again, short whatever the token's length. */
export function digestToken(token: string): string {
  return createHash('sha256').update(token).digest('base64url').slice(0, 16);
}

/**
 * Two lanes of multiply and xor over the key's characters, mixed at the end (after MurmurHash3's finalizer). Not
 * cryptographic: ids are not chosen to collide, and a page's worth of sha256 took as long as reading the page.
 * Never 0 and 0, which marks a free slot.
 */
function hashKey(key: string): [high: number, low: number] {
  let high = 0xdeadbeef ^ key.length;
  let low = 0x41c6ce57 ^ key.length;
  for (let at = 0; at < key.length; at++) {
    const code = key.charCodeAt(at);
    high = Math.imul(high ^ code, 0x9e3779b1);
    low = Math.imul(low ^ code, 0x5f356495);
    high ^= high >>> 15;
    low ^= low >>> 13;
  }
  const mixed = mix(high ^ Math.imul(low, 0xc2b2ae35));
  return [mixed, mix(low ^ Math.imul(mixed, 0x85ebca6b)) || 1];
}

function mix(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
