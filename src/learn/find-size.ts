import { findName, type Reaction } from './find-name.js';
import type { KeyedPage, ListView } from './list-view.js';
import { namesInOrder } from './parameter-names.js';

/** Records of a page that is asked for to see whether the service reads its size. */
const SHORT = 3;
/** The sizes that are asked for to see how many records a page may have. */
const LARGE = [1_000, 200];

/** The parameter by which a page's size is asked for, and the short page that it brought. */
export interface FoundSize {
  readonly name: string;
  readonly page: KeyedPage;
}

/** The most records that a page may have. */
export interface Cap {
  /** The most records that came at once. */
  readonly seen: number;
  /** The size that was asked for then. */
  readonly asked: number;
  /** Whether the service gave fewer than it had and was asked for. */
  readonly isCap: boolean;
  readonly request: number;
  /** The service's own sentence where it refused a larger size. */
  readonly refusal?: { readonly size: number; readonly says: string | undefined; readonly request: number };
}

/** Finds the parameter by which the service cuts its first page short. `hints`: names that are likelier than others. */
export function findSize(view: ListView, hints: readonly string[]): Promise<FoundSize | undefined> {
  const { reference } = view;
  const size = Math.min(SHORT, reference.keys.length - 1);
  if (size < 1) return Promise.resolve(undefined);
  const tryWith = async (names: readonly string[]): Promise<Reaction<KeyedPage>> => {
    const outcome = await view.ask(Object.fromEntries(names.map((name) => [name, size])));
    // A parameter that is taken for a filter leaves nothing, whatever else was asked for beside it.
    if (outcome.kind !== 'page' || outcome.keys.length === 0) return { kind: 'refused' };
    const isCut = outcome.keys.length === size && (view.order === 'other' || view.beginOf(outcome) === 0);
    return isCut ? { kind: 'effect', effect: outcome } : { kind: 'none' };
  };
  const names = namesInOrder('size', hints);
  const likely = Math.min(2, hints.filter((name) => names.includes(name)).length);
  return findName(names, tryWith, { mayAsk: () => view.mayAsk(), likely }).then(
    (found) => found && { name: found.name, page: found.effect },
  );
}

/** Asks for large pages. `total`: records of the list, where it tells them. */
export async function findCap(view: ListView, sizeName: string, total: number | undefined): Promise<Cap | undefined> {
  let refusal: Cap['refusal'];
  for (const asked of LARGE) {
    const outcome = await view.ask({ [sizeName]: asked });
    if (outcome.kind === 'page') {
      const seen = outcome.keys.length;
      if (seen > view.reference.keys.length) view.reference = outcome;
      // A service that gives just so many may give no more, whatever is asked for.
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
