import type { Requester } from './request-budget.js';

/** While both kinds wait, one request that is not urgent follows this many urgent ones. */
const URGENT_BEFORE_OTHERS = 4;

/** Takes urgent requests first without starving the others, and within each kind rotates through the companies. */
export class FairQueue<T> {
  readonly #urgent = new Turns<T>();
  readonly #others = new Turns<T>();
  #urgentInARow = 0;

  get size(): number {
    return this.#urgent.size + this.#others.size;
  }

  /** Returns a function that removes the item. */
  add({ company, urgent }: Requester, item: T): () => void {
    return (urgent ? this.#urgent : this.#others).add(company, item);
  }

  take(): T | undefined {
    const isOthersTurn = this.#urgent.size === 0 || (this.#others.size > 0 && this.#urgentInARow >= URGENT_BEFORE_OTHERS);
    this.#urgentInARow = isOthersTurn ? 0 : this.#urgentInARow + 1;
    return (isOthersTurn ? this.#others : this.#urgent).take();
  }
}

/** One line of items per company. A company that had its turn goes to the end. */
class Turns<T> {
  readonly #lines = new Map<string, Set<{ readonly item: T }>>();
  size = 0;

  add(company: string, item: T): () => void {
    const line = this.#lines.get(company) ?? new Set();
    this.#lines.set(company, line);
    const place = { item };
    line.add(place);
    this.size += 1;
    return () => {
      if (!line.delete(place)) return;
      this.size -= 1;
      if (line.size === 0 && this.#lines.get(company) === line) this.#lines.delete(company);
    };
  }

  take(): T | undefined {
    for (const [company, line] of this.#lines) {
      this.#lines.delete(company);
      for (const place of line) {
        line.delete(place);
        this.size -= 1;
        if (line.size > 0) this.#lines.set(company, line);
        return place.item;
      }
    }
    return undefined;
  }
}
