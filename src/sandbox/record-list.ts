import { Random } from './random.js';

interface Entry {
  text: string;
  /** The place of the record: ranks grow along the list, and a record keeps its rank while others join or leave. */
  rank: number;
  /** The number that generated the text; -1 for a text that a test inserted. */
  readonly serial: number;
  edition: number;
}

/** The place of a continuation: after the record of this rank, in the ranks of this generation. */
export interface Place {
  readonly generation: number;
  readonly rank: number;
}

/** The most removed records remembered, to bound the memory of a sandbox that runs for days. */
const KEPT = 10_000;

/**
 * The records of one list in their order, as JSON texts. A record keeps its place until it leaves; others may join or leave
 * anywhere around it.
 */
export class RecordList {
  /** `unstable`: every offset page is cut from another order. Continuations always follow the true order. */
  order: 'stable' | 'unstable';
  #entries: Entry[];
  #nextSerial: number;
  #generation = 0;
  /** Ranks of the records that left, by id. */
  #left = new Map<string, number>();
  readonly #make: (serial: number, edition: number) => string;
  #shuffle: Random;

  constructor(size: number, order: 'stable' | 'unstable', make: (serial: number, edition: number) => string) {
    this.order = order;
    this.#make = make;
    this.#entries = Array.from({ length: size }, (_, serial) => ({ text: make(serial, 0), rank: serial, serial, edition: 0 }));
    this.#nextSerial = size;
    this.#shuffle = new Random('shuffle', size);
  }

  get size(): number {
    return this.#entries.length;
  }

  /** A read-only view of the list without the records with these ids. */
  without(ids: ReadonlySet<string>): RecordList {
    if (ids.size === 0) return this;
    const view = new RecordList(0, this.order, this.#make);
    view.#entries = this.#entries.filter(({ text }) => !ids.has(idOf(text)));
    view.#generation = this.#generation;
    view.#left = this.#left;
    view.#shuffle = this.#shuffle;
    return view;
  }

  texts(): string[] {
    return this.#entries.map(({ text }) => text);
  }

  ids(): string[] {
    return this.#entries.map(({ text }) => idOf(text));
  }

  slice(skip: number, take: number): string[] {
    if (this.order === 'stable') return this.#entries.slice(skip, skip + take).map(({ text }) => text);
    const texts = this.texts();
    for (let i = texts.length - 1; i > 0; i--) {
      const j = this.#shuffle.below(i + 1);
      [texts[i], texts[j]] = [texts[j] as string, texts[i] as string];
    }
    return texts.slice(skip, skip + take);
  }

  /**
   * The page after a place (undefined: the first page), and the next place while more records follow. A record that stays in the list is
   * neither missed nor repeated. Undefined for a place of another generation.
   */
  after(place: Place | undefined, take: number): { texts: string[]; next: Place | undefined } | undefined {
    if (place && place.generation !== this.#generation) return undefined;
    const start = place ? this.#firstBeyond(place.rank) : 0;
    const page = this.#entries.slice(start, start + take);
    const last = page.at(-1);
    const more = last !== undefined && start + take < this.size;
    return { texts: page.map(({ text }) => text), next: more ? { generation: this.#generation, rank: last.rank } : undefined };
  }

  /** The place after the record with this id, even if the record has left; undefined for an id that the list never had. */
  placeOf(id: string): Place | undefined {
    const rank = this.#entries.find(({ text }) => idOf(text) === id)?.rank ?? this.#left.get(id);
    return rank === undefined ? undefined : { generation: this.#generation, rank };
  }

  /** Inserts a record at `index`. Default: a new record of the list's own kind. */
  insert(index: number, text?: string): void {
    const before = this.#entries[index - 1]?.rank;
    const after = this.#entries[index]?.rank;
    const rank = before === undefined ? (after ?? 1) - 1 : after === undefined ? before + 1 : (before + after) / 2;
    const serial = text === undefined ? this.#nextSerial++ : -1;
    this.#entries.splice(index, 0, { text: text ?? this.#make(serial, 0), rank, serial, edition: 0 });
    if (rank === before || rank === after) this.#renumber();
  }

  remove(index: number, count = 1): void {
    if (this.#left.size > KEPT) this.#left.clear();
    for (const { text, rank } of this.#entries.splice(index, count)) this.#left.set(idOf(text), rank);
  }

  /** Changes the record at `index`. Default: to its next edition. */
  change(index: number, text?: string): void {
    const entry = this.#entries[index];
    if (!entry) throw new RangeError(`No record at ${index} of ${this.size}`);
    if (text !== undefined) entry.text = text;
    else if (entry.serial >= 0) entry.text = this.#make(entry.serial, ++entry.edition);
  }

  #firstBeyond(rank: number): number {
    let low = 0;
    let high = this.size;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#entries[middle] as Entry).rank > rank) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** Needed if no number is left between two ranks. Old places would now point elsewhere, so the new generation refuses them. */
  #renumber(): void {
    this.#generation++;
    this.#left.clear();
    for (const [index, entry] of this.#entries.entries()) entry.rank = index;
  }
}

/** A text that a test inserted may be no JSON, so the id is found by a pattern. */
function idOf(text: string): string {
  return /"u?id":"?([^",}]+)/.exec(text)?.[1] ?? '';
}
