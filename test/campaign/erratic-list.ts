interface Entry {
  readonly id: number;
  readonly edition: number;
}

export type Style = 'total' | 'bare' | 'token';

/**
 * A list that stands still while it is walked, and is served as services have been seen to serve theirs: records that come twice, with
 * one text or with two, pages cut short, totals that are wrong.
 */
export class ErraticList {
  readonly #style: Style;
  readonly #random: (below: number) => number;
  #entries: Entry[];
  #born: number;
  #mostAtOnce = Infinity;
  /** Every record with such a number has a text that depends on the page it comes in; 0: none. */
  #unsteady = 0;
  #surplus = 0;

  constructor(style: Style, random: (below: number) => number) {
    this.#style = style;
    this.#random = random;
    this.#born = random(30);
    this.#entries = Array.from({ length: this.#born }, (_, id) => ({ id, edition: 0 }));
  }

  /** Whether every record comes with one text, however often it comes. */
  get isSteady(): boolean {
    const editions = new Map(this.#entries.map(({ id, edition }) => [id, edition]));
    return this.#unsteady === 0 && this.#entries.every(({ id, edition }) => editions.get(id) === edition);
  }

  /** What a night brings: up to three changes, and another way to be served. */
  change(): void {
    const random = this.#random;
    for (let changes = random(4); changes > 0; changes -= 1) this.#changeOne();
    if (random(4) === 0) this.#mostAtOnce = 1 + random(4);
    else if (random(3) > 0) this.#mostAtOnce = Infinity;
    this.#unsteady = random(4) === 0 ? 1 + random(5) : 0;
    this.#surplus = random(12) === 0 ? 1 : 0;
  }

  #changeOne(): void {
    const [entries, random] = [this.#entries, this.#random];
    const at = random(entries.length + 1);
    const entry = entries[at];
    const kind = random(8);
    if (kind === 0) entries.splice(at, 0, { id: this.#born++, edition: 0 });
    else if (kind === 1 && random(3) === 0) entries.splice(0);
    else if (kind === 2) this.#entries = entries.filter(({ id }, n) => entries.findIndex((other) => other.id === id) === n);
    if (!entry) return;
    if (kind === 3) entries.splice(at, 1);
    else if (kind === 4) entries[at] = { ...entry, edition: entry.edition + 1 };
    else if (kind === 5) entries.push(entry);
    else if (kind === 6) entries.splice(random(entries.length), 0, { ...entry, edition: entry.edition + random(2) });
    else if (kind === 7) entries.splice(random(entries.length), 0, ...entries.splice(at, 1));
  }

  /** The answer as the service would write it. A page token is the place where the next page begins. */
  answer({ skip, take, token }: { skip: number; take: number; token?: string | undefined }): string {
    const from = this.#style === 'token' ? Number(token ?? 0) : skip;
    const page = this.#entries.slice(from, from + Math.min(take, this.#mostAtOnce));
    const data = page.map((entry) => this.#textOf(entry, from)).join(',');
    if (this.#style === 'bare') return `[${data}]`;
    const end = from + page.length;
    const hasNextPage = end < this.#entries.length;
    return this.#style === 'token'
      ? `{"hasNextPage":${hasNextPage},"nextPageToken":${hasNextPage ? `"${end}"` : 'null'},"data":[${data}]}`
      : `{"totalRecords":${this.#entries.length + this.#surplus},"totalDisplayRecords":${page.length},"data":[${data}]}`;
  }

  #textOf({ id, edition }: Entry, from: number): string {
    const shown = this.#unsteady > 0 && id % this.#unsteady === 0 ? edition + 100 * (from % 2) : edition;
    return `{"id":"r${id}","edition":${shown}}`;
  }
}
