import type { Page, PassMemory } from '../../src/pagers/pager.js';

/** What a pass has received, as the walk keeps it. */
export class Received implements PassMemory {
  readonly keys = new Set<string>();
  readonly tokens = new Set<string>();

  hasKey(key: string): boolean {
    return this.keys.has(key);
  }

  hasToken(token: string): boolean {
    return this.tokens.has(token);
  }

  get size(): number {
    return this.keys.size;
  }

  add({ keys, nextToken }: Page): void {
    for (const key of keys) this.keys.add(key);
    if (nextToken !== undefined) this.tokens.add(nextToken);
  }
}
