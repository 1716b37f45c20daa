import { KeyHashes } from '../../src/pagers/hashes.js';
import type { Page, PassMemory } from '../../src/pagers/pager.js';

/** A page, and the names of its records beside their hashes. */
export type NamedPage = Page & { readonly names: readonly string[] };

export function pageOf(names: Iterable<string>, more: { readonly total?: number; readonly nextToken?: string } = {}): NamedPage {
  return { names: [...names], keys: KeyHashes.of([...names]), ...more };
}

/** What a pass has received, as the walk keeps it. */
export class Received implements PassMemory {
  readonly names = new Set<string>();
  readonly tokens = new Set<string>();
  readonly #hashes = new Set<string>();

  hasAny(keys: KeyHashes): boolean {
    return hashesOf(keys).some((hash) => this.#hashes.has(hash));
  }

  hasAll(keys: KeyHashes): boolean {
    return hashesOf(keys).every((hash) => this.#hashes.has(hash));
  }

  hasToken(token: string): boolean {
    return this.tokens.has(token);
  }

  get size(): number {
    return this.names.size;
  }

  add({ names, keys, nextToken }: NamedPage): void {
    for (const name of names) this.names.add(name);
    for (const hash of hashesOf(keys)) this.#hashes.add(hash);
    if (nextToken !== undefined) this.tokens.add(nextToken);
  }
}

function hashesOf({ words, length }: KeyHashes): string[] {
  return Array.from({ length }, (_, n) => `${words[2 * n]} ${words[2 * n + 1]}`);
}
