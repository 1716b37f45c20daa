import { randomOf } from '../pagers/shifting-list.js';

/** How a simulated list is served. */
export interface Serving {
  readonly style: 'total' | 'bare' | 'page' | 'page-bare' | 'token' | 'link' | 'cursor';
  /** Records at once at most, whatever is asked for. */
  readonly mostAtOnce: number;
  /** Every offset page is cut from another order. */
  readonly reorders: boolean;
  /** Behind its end a list by position gives its last page again. */
  readonly clamps?: boolean;
  /** The same place has the same token whenever it is asked for. */
  readonly lastingTokens?: boolean;
  /** A token list says how many records it has. */
  readonly tellsTotal?: boolean;
}

/** What a request asks for, in whichever style. */
export interface Asked {
  readonly skip: number;
  readonly take: number;
  readonly token?: string | undefined;
  readonly page?: number | undefined;
}

interface Entry {
  readonly id: string;
  readonly place: number;
  edition: number;
}

/** A list that changes between any two requests; it shares nothing with the pagers but the spelling of the requests. */
export class MovingList {
  #entries: Entry[];
  /** Where every record stands, or stood. */
  readonly #places = new Map<string, number>();
  #born = 0;
  #steadfast = new Set<string>();
  readonly #random: (below: number) => number;

  constructor(
    seed: number,
    length: number,
    readonly serving: Serving,
  ) {
    this.#random = randomOf(seed);
    this.#entries = Array.from({ length }, (_, place) => this.#make(place));
  }

  get ids(): string[] {
    return this.#entries.map(({ id }) => id);
  }

  /** The texts by id, as the list has them now. */
  get texts(): Map<string, string> {
    return new Map(this.#entries.map((entry) => [entry.id, textOf(entry)]));
  }

  /** From now on it is noted which records stay. */
  watch(): void {
    this.#steadfast = new Set(this.ids);
  }

  /** The records that were there at every moment since. */
  get steadfast(): ReadonlySet<string> {
    return this.#steadfast;
  }

  /** One insert, delete or update at a random place; the second update brings the first text back; `growth` of ten changes of the length insert. */
  change(growth: number): void {
    const at = this.#random(this.#entries.length + 1);
    const kind = this.#random(3);
    if (kind === 0 && this.#entries[at]) this.#entries[at].edition = 1 - this.#entries[at].edition;
    else if (this.#random(10) < growth && this.#entries.length < 80) this.#insert(at);
    else for (const { id } of this.#entries.splice(at, 1)) this.#steadfast.delete(id);
  }

  /** The answer as the service would write it. Undefined: the token is not known (any more). */
  answer(asked: Asked): string | undefined {
    const { style } = this.serving;
    if (style === 'token' || style === 'link') return this.#tokenPage(asked);
    if (style === 'cursor') return this.#cursorPage(asked);
    const take = Math.min(asked.take, this.serving.mostAtOnce);
    // Pages are numbered from 1, and cut as the service likes, all to one size.
    const asks = style.startsWith('page') ? (asked.page! - 1) * take : asked.skip;
    const { length } = this.#entries;
    const skip = this.serving.clamps && asks >= length ? Math.floor(Math.max(0, length - 1) / take) * take : asks;
    const ordered = this.serving.reorders ? this.#shuffled() : this.#entries;
    const data = ordered.slice(skip, skip + take).map(textOf);
    if (style === 'bare' || style === 'page-bare') return `[${data.join(',')}]`;
    return `{"totalRecords":${this.#entries.length},"totalDisplayRecords":${data.length},"data":[${data.join(',')}]}`;
  }

  /** A token names the place behind which the next page begins. */
  #tokenPage({ take, token }: Asked): string | undefined {
    const behind = token === undefined ? -Infinity : Number(token.split('/')[0]);
    if (Number.isNaN(behind)) return undefined;
    const following = this.#entries.filter(({ place }) => place > behind);
    const page = following.slice(0, Math.min(take, this.serving.mostAtOnce));
    const hasNextPage = following.length > page.length;
    // A number behind the place: no two tokens are equal, even where two pages end at one place.
    const next = hasNextPage
      ? `${page.at(-1)?.place ?? behind}/${this.serving.lastingTokens ? 0 : this.#random(1e9)}`
      : undefined;
    if (this.serving.style === 'link') {
      const link = next === undefined ? '' : `,"@odata.nextLink":"list?take=${take}&token=${encodeURIComponent(next)}"`;
      const count = this.serving.tellsTotal ? `"@odata.count":${this.#entries.length},` : '';
      return `{${count}"value":[${page.map(textOf).join(',')}]${link}}`;
    }
    const total = this.serving.tellsTotal ? `"totalRecords":${this.#entries.length},` : '';
    return `{${total}"hasNextPage":${hasNextPage},"nextPageToken":${next === undefined ? 'null' : JSON.stringify(next)},"data":[${page.map(textOf).join(',')}]}`;
  }

  /** A cursor is the id of a record, which may be gone by now; the list is empty behind the last one. */
  #cursorPage({ take, token }: Asked): string | undefined {
    const behind = token === undefined ? -Infinity : this.#places.get(token);
    if (behind === undefined) return undefined;
    const page = this.#entries.filter(({ place }) => place > behind).slice(0, Math.min(take, this.serving.mostAtOnce));
    return `{"rows":[${page.map(textOf).join(',')}]}`;
  }

  #insert(at: number): void {
    const before = this.#entries[at - 1]?.place ?? (this.#entries[0]?.place ?? 0) - 2;
    const behind = this.#entries[at]?.place ?? before + 2;
    this.#entries.splice(at, 0, this.#make((before + behind) / 2));
  }

  #make(place: number): Entry {
    this.#born += 1;
    this.#places.set(`r${this.#born}`, place);
    return { id: `r${this.#born}`, place, edition: 0 };
  }

  #shuffled(): Entry[] {
    const entries = [...this.#entries];
    for (let i = entries.length - 1; i > 0; i -= 1) {
      const j = this.#random(i + 1);
      [entries[i], entries[j]] = [entries[j]!, entries[i]!];
    }
    return entries;
  }
}

function textOf({ id, edition }: Entry): string {
  return `{"id":"${id}","edition":${edition}}`;
}
