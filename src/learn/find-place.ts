import { findName, type Reaction } from './find-name.js';
import type { KeyedPage, ListView } from './list-view.js';
import { namesInOrder } from './parameter-names.js';

/** The parameter that asks for a later page. */
export interface FoundPlace {
  readonly name: string;
  readonly counts: 'records' | 'pages';
  /** The number of the first record, or of the first page. */
  readonly first: 0 | 1;
  /** Only the name suggests it, since the order of the list changes from one request to the next. */
  readonly isGuessed?: true;
  readonly requests: readonly number[];
}

/** The value sent to the service. Each meaning of the parameter makes the page begin at another place. */
const VALUE = 2;

/**
 * Finds the parameter that moves the beginning of a page. With the value 2 and a size of 3, a service that counts records from 0 begins
 * with the third record of the list, from 1 with the second; a service that counts pages from 1 begins with the fourth, from 0 with the
 * seventh. `size`: the parameter of the size and its value, if there is one.
 */
export async function findPlace(
  view: ListView,
  size: { readonly name: string; readonly value: number } | undefined,
  hints: readonly string[],
): Promise<FoundPlace | undefined> {
  if (view.order === 'other') return guessedPlace(namesInOrder('place', hints, size?.name)[0]!);
  const sized = size === undefined ? {} : { [size.name]: size.value };
  const possible = (page: KeyedPage, value: number) =>
    MEANINGS.filter((each) => isPossible(view, page, value, each, size?.value));
  const tryWith = async (names: readonly string[]): Promise<Reaction<KeyedPage>> => {
    const outcome = await view.ask({ ...sized, ...Object.fromEntries(names.map((name) => [name, VALUE])) });
    if (outcome.kind !== 'page') return { kind: 'refused' };
    if (possible(outcome, VALUE).length > 0) return { kind: 'effect', effect: outcome };
    return { kind: outcome.keys.length === 0 ? 'refused' : 'none' };
  };
  const names = namesInOrder('place', hints, size?.name);
  const found = await findName(names, tryWith, { mayAsk: () => view.mayAsk(), likely: 2 });
  if (!found) return undefined;
  const { name, effect: page } = found;
  const meanings = possible(page, VALUE);
  if (meanings.length === 1) return { name, ...meanings[0]!, requests: [page.request] };
  const one = await view.ask({ ...sized, [name]: 1 });
  if (one.kind !== 'page') return undefined;
  const meaning = possible(one, 1).find((each) => meanings.includes(each));
  return meaning && { name, ...meaning, requests: [page.request, one.request] };
}

function guessedPlace(name: string): FoundPlace {
  const counts = /page|^p$/i.test(name) ? 'pages' : 'records';
  const first = counts === 'pages' || /index/i.test(name) ? 1 : 0;
  return { name, counts, first, isGuessed: true, requests: [] };
}

type Meaning = Pick<FoundPlace, 'counts' | 'first'>;

const MEANINGS: readonly Meaning[] = [
  { counts: 'records', first: 0 },
  { counts: 'pages', first: 1 },
  { counts: 'records', first: 1 },
  { counts: 'pages', first: 0 },
];

/**
 * Whether a page requested with this value begins where the meaning says. After the last known record, any beginning is possible. `asked`:
 * the requested size. If the service has a size of its own, the second page begins somewhere after the records that positions lead to.
 */
function isPossible(
  view: ListView,
  page: KeyedPage,
  value: number,
  { counts, first }: Meaning,
  asked: number | undefined,
): boolean {
  const begin = view.beginOf(page);
  const isBeyond = begin === -1 || begin === undefined;
  if (counts === 'pages' && asked === undefined) return value === first ? begin === 0 : isBeyond || begin > VALUE;
  const expected = counts === 'records' ? value - first : (value - first) * asked!;
  return expected < view.reference.keys.length ? begin === expected : isBeyond;
}
