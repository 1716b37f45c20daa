import { setTimeout as sleep } from 'node:timers/promises';
import type { Readers } from './readers.js';
import type { Slot } from './slot.js';

const PAUSE_MS = 150;
const PAGE = 200;

interface Page {
  readonly data: readonly { readonly seq: string | number }[];
  readonly next_after: string | number;
  readonly feed: string;
}

/** Follows the change feed through all APIs in turn, as one consumer behind a load balancer does. */
export class FeedReader {
  /** The numbers of the changes that were read, in their order. */
  readonly read: string[] = [];
  readonly #readers: Readers;
  readonly #apis: readonly Slot[];
  readonly #ending = new AbortController();
  #loop: Promise<void> | undefined;
  #after = '0';
  #feed: string | undefined;
  #turn = 0;

  constructor(readers: Readers, apis: readonly Slot[]) {
    this.#readers = readers;
    this.#apis = apis;
  }

  start(): void {
    this.#loop = this.#follow();
  }

  /** Reads to the end of the feed, while both APIs are served. */
  async stop(): Promise<void> {
    this.#ending.abort();
    await this.#loop;
    while ((await this.#readPage()) !== 0) await sleep(PAUSE_MS);
  }

  async #follow(): Promise<void> {
    for (; !this.#ending.signal.aborted; await sleep(PAUSE_MS)) await this.#readPage();
  }

  /** Returns how many changes came; undefined where there was no answer. */
  async #readPage(): Promise<number | undefined> {
    const api = this.#apis[this.#turn++ % this.#apis.length]!;
    if (!api.isReady) return undefined;
    const feed = this.#feed === undefined ? '' : `&feed=${this.#feed}`;
    const response = await this.#readers.call(api, `/api/changes?after=${this.#after}&limit=${PAGE}${feed}`);
    if (response?.status !== 200) return undefined;
    const page = (await response.json()) as Page;
    this.read.push(...page.data.map(({ seq }) => String(seq)));
    [this.#after, this.#feed] = [String(page.next_after), page.feed];
    return page.data.length;
  }
}
