import type { Page, Received } from '../../src/pagers/pager.js';

/** A page, and the names of its records. */
export type NamedPage = Page & { readonly names: readonly string[] };

export function pageOf(
  names: Iterable<string>,
  more: { readonly total?: number; readonly nextToken?: string | number; readonly hasNext?: boolean } = {},
): NamedPage {
  const all = [...names];
  return { names: all, count: all.length, ...more };
}

/** What a pass has received, as the walk keeps it. */
export class ReceivedNames {
  readonly names = new Set<string>();
  first: readonly string[] | undefined;
  last: readonly string[] = [];
  readonly tokens = new Set<string | number>();

  /** What the pass had received before the page. */
  before({ names }: NamedPage): Received {
    return {
      repeats: names.filter((name) => this.names.has(name)).length,
      isFirstPage: this.first?.join() === names.join(),
      endsAsBefore: this.last.length > 0 && names.slice(-this.last.length).join() === this.last.join(),
      hasToken: (token) => this.tokens.has(token),
    };
  }

  get size(): number {
    return this.names.size;
  }

  add({ names, nextToken }: NamedPage): void {
    this.first ??= names;
    if (names.length > 0) this.last = names;
    for (const name of names) this.names.add(name);
    if (nextToken !== undefined) this.tokens.add(nextToken);
  }
}
