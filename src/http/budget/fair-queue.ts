import type { Requester } from './request-budget.js';

/** While both kinds wait, one in so many goes to the kind that is not urgent. */
const URGENT_BEFORE_OTHERS = 4;

/** Takes turns: urgent requesters before the others, which never stand still, and within a kind one company after the other. */
export class FairQueue<T> {
  readonly #urgent = new Turns<T>();
  readonly #others = new Turns<T>();
  #urgentInARow = 0;

  get size(): number {
    return this.#urgent.size + this.#others.size;
  }

  /** Returns what takes the item out again. */
  add({ company, urgent }: Requester, item: T): () => void {
    return (urgent ? this.#urgent : this.#others).add(company, item);
  }

  take(): T | undefined {
    const isOthersTurn = this.#urgent.size === 0 || (this.#others.size > 0 && this.#urgentInARow >= URGENT_BEFORE_OTHERS);
    this.#urgentInARow = isOthersTurn ? 0 : this.#urgentInARow + 1;
    return (isOthersTurn ? this.#others : this.#urgent).take();
  }
}

/** Items in as many lines as there are companies; whose turn it was stands behind the others. */
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
