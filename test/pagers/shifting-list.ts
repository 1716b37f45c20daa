import type { PageInput } from '../../src/pagers/pager.js';
import { type NamedPage, pageOf } from './received.js';

/** Small, fast and seeded (mulberry32): a seed replays its walk. */
export function randomOf(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

export type ListResponse = NamedPage;

/**
 * A list that changes between requests and keeps its order: records stand where they were put until they are deleted.
 * It knows nothing of the pagers but the two numbers of a request.
 */
export class ShiftingList {
  /** Records that were there from the beginning and still are. */
  readonly steadfast: Set<string>;
  #records: string[];
  #born = 0;

  constructor(
    length: number,
    private readonly tellsTotal: boolean,
    private readonly mostAtOnce: number,
  ) {
    this.#records = Array.from({ length }, () => this.#name());
    this.steadfast = new Set(this.#records);
  }

  get records(): readonly string[] {
    return this.#records;
  }

  insert(at: number): void {
    this.#records.splice(at, 0, this.#name());
  }

  delete(at: number): void {
    for (const gone of this.#records.splice(at, 1)) this.steadfast.delete(gone);
  }

  answer({ body }: PageInput): ListResponse {
    const [from, count] = [Number(body?.['from']), Number(body?.['count'])];
    const keys = this.#records.slice(from, from + Math.min(count, this.mostAtOnce));
    return pageOf(keys, this.tellsTotal ? { total: this.#records.length } : {});
  }

  #name(): string {
    this.#born += 1;
    return `r${this.#born}`;
  }
}
