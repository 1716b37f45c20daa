import type { Sign } from '../pagers/around.js';
import { inputOf } from './first-look.js';
import { type IdCandidate, idCandidates, keysOf, tellsApart } from './ids.js';
import type { ListAddress, Outcome, Probing } from './probing.js';
import type { SeenPage } from './seen-page.js';
import type { Tally } from './totals.js';

/** Requests reserved for the rehearsal and the ETag check. */
const KEPT_FOR_THE_END = 9;

/** A page by its keys: its records are not kept. */
export interface KeyedPage {
  readonly request: number;
  readonly keys: readonly string[];
  readonly signs: readonly Sign[];
  readonly etag: string | undefined;
}

/** `unknown`: the list changed between the two requests, or there was no second one. */
export type Order = 'same' | 'other' | 'unknown';

export type KeyedOutcome = ({ readonly kind: 'page' } & KeyedPage) | Exclude<Outcome, { kind: 'page' }>;

/**
 * A list under examination. Pages are compared by the keys of their records. The reference is the longest first page so far; a page's
 * beginning is the place of its first record in it.
 */
export class ListView {
  readonly address: ListAddress;
  readonly dataPath: readonly string[];
  readonly tallies: Tally[] = [];
  readonly key: IdCandidate | undefined;
  readonly #probing: Probing;
  /** Pages, as texts of their keys, by ETag. */
  readonly etags = new Map<string, Set<string>>();
  /** The id candidates that identify the records of every page so far. */
  ids: readonly IdCandidate[];
  /** Parameters without which the list gives no page. */
  needed: Readonly<Record<string, number>> = {};
  reference: KeyedPage;
  /** The order in which the first page came at the second request. */
  order: Order = 'unknown';
  /** The requests that showed the order. */
  repetitions: readonly number[] = [];

  constructor(
    probing: Probing,
    address: ListAddress,
    first: { readonly page: SeenPage; readonly request: number },
    list: string,
  ) {
    this.#probing = probing;
    this.address = address;
    this.dataPath = first.page.dataPath;
    this.ids = idCandidates(first.page.records, list);
    this.key = this.ids[0];
    this.reference = this.#keyed(first.page, first.request);
  }

  /** Whether a request is left that is not reserved. */
  mayAsk(): boolean {
    return this.#probing.left > KEPT_FOR_THE_END;
  }

  /** `isSecret`: some values come from records or tokens, so the report does not show them. */
  async ask(parameters: Readonly<Record<string, number | string>>, isSecret = false): Promise<KeyedOutcome> {
    const { dataPath } = this;
    const outcome = await this.#probing.ask(this.address, inputOf(this.address, { ...this.needed, ...parameters }), {
      dataPath,
      isSecret,
    });
    return outcome.kind === 'page' ? { kind: 'page', ...this.#keyed(outcome.page, outcome.request) } : outcome;
  }

  /** Repeats the request for the first page and compares the order of the records. */
  async repeat(asked: Readonly<Record<string, number>>): Promise<void> {
    const again = await this.ask(asked);
    if (again.kind !== 'page') return;
    this.order = orderOf(this.reference.keys, again.keys);
    this.repetitions = [this.reference.request, again.request];
  }

  /** The place of the page's first record in the reference; -1 if it is not there, undefined for an empty page. */
  beginOf({ keys }: KeyedPage): number | undefined {
    return keys.length === 0 ? undefined : this.reference.keys.indexOf(keys[0]!);
  }

  #keyed(page: SeenPage, request: number): KeyedPage {
    this.tallies.push({ numbers: page.numbers, count: page.records.length });
    this.ids = this.ids.filter((candidate) => tellsApart(page.records, candidate));
    const keys = keysOf(page.records, this.key);
    const { etag } = page.headers;
    if (etag !== undefined) this.etags.set(etag, (this.etags.get(etag) ?? new Set()).add(JSON.stringify(keys)));
    return { request, keys, signs: page.signs, etag };
  }
}

/** Equal records in another order show an unstable list. Other records may have joined or left. */
function orderOf(before: readonly string[], again: readonly string[]): Order {
  if (before.join('\n') === again.join('\n')) return 'same';
  const common = before.filter((key) => again.includes(key));
  const isInOrder = common.join('\n') === again.filter((key) => common.includes(key)).join('\n');
  return common.length >= before.length / 2 && isInOrder ? 'unknown' : 'other';
}
