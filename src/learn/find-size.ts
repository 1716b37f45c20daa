import { findName, type Reaction } from './find-name.js';
import type { KeyedPage, ListView } from './list-view.js';
import { namesInOrder } from './parameter-names.js';

/** The size of the page that shows whether the service reads a size. */
const SHORT = 3;
/** Requested sizes that show how many records a page may have. */
const LARGE = [1_000, 200];

/** The parameter of the page size, and the short page that it brought. */
export interface FoundSize {
  readonly name: string;
  readonly page: KeyedPage;
}

export interface Cap {
  /** The most records that came at once. */
  readonly seen: number;
  readonly asked: number;
  /** Whether the service gave fewer than it had and than requested. */
  readonly isCap: boolean;
  readonly request: number;
  /** The service's own sentence if it refused a larger size. */
  readonly refusal?: { readonly size: number; readonly says: string | undefined; readonly request: number };
}

/** Finds the parameter that shortens the first page. `hints`: names that are likelier than others. */
export async function findSize(view: ListView, hints: readonly string[]): Promise<FoundSize | undefined> {
  const size = Math.min(SHORT, view.reference.keys.length - 1);
  if (size < 1) return undefined;
  const tryWith = async (names: readonly string[]): Promise<Reaction<KeyedPage>> => {
    const outcome = await view.ask(Object.fromEntries(names.map((name) => [name, size])));
    // A parameter that the service takes for a filter leaves no record, so this says nothing about the other names.
    if (outcome.kind !== 'page' || outcome.keys.length === 0) return { kind: 'refused' };
    const isCut = outcome.keys.length === size && (view.order === 'other' || view.beginOf(outcome) === 0);
    return isCut ? { kind: 'effect', effect: outcome } : { kind: 'none' };
  };
  const names = namesInOrder('size', hints);
  const likely = Math.min(2, hints.filter((name) => names.includes(name)).length);
  const found = await findName(names, tryWith, { mayAsk: () => view.mayAsk(), likely });
  return found && { name: found.name, page: found.effect };
}

/** Requests large pages. `total`: the list's own count of its records, if it has one. */
export async function findCap(view: ListView, sizeName: string, total: number | undefined): Promise<Cap | undefined> {
  let refusal: Cap['refusal'];
  for (const asked of LARGE) {
    const outcome = await view.ask({ [sizeName]: asked });
    if (outcome.kind === 'page') {
      const seen = outcome.keys.length;
      if (seen > view.reference.keys.length) view.reference = outcome;
      // A service that gives exactly as many as requested may have its cap there, so one more is requested.
      const hasMore = total === undefined ? outcome.signs.length > 0 : total > seen;
      const more = hasMore && seen === asked && view.mayAsk() ? await view.ask({ [sizeName]: asked + 1 }) : undefined;
      if (more?.kind === 'page' && more.keys.length === asked)
        return { seen, asked: asked + 1, isCap: true, request: more.request, ...(refusal && { refusal }) };
      const isCap = seen < asked && hasMore;
      return { seen, asked, isCap, request: outcome.request, ...(refusal && { refusal }) };
    }
    const says = outcome.kind === 'refused' ? outcome.error.serviceSays : outcome.problem;
    refusal ??= { size: asked, says, request: outcome.request };
  }
  return undefined;
}
