/** The numbers of a response, and the count of its records. */
export interface Tally {
  /** Whole numbers around the records, by their places as a catalogue entry names them. */
  readonly numbers: ReadonlyMap<string, number>;
  readonly count: number;
}

/** Names of numbers that concern a page, not the list. */
const OF_PAGE = /page|size|limit|offset|skip|start|index|status|code|version|display|per|max|current|time|retry|rate/;
const TOTAL = /total|count|records|results|resources|elements|items|hits/;
const UNLIKELY = 10;

/**
 * Finds the places of the list's total: a number that is the same on all pages, never smaller than a page, and not always the page's own
 * length. The likeliest place comes first.
 */
export function totalPlaces(tallies: readonly Tally[]): readonly string[] {
  const places = new Set(tallies.flatMap(({ numbers }) => [...numbers.keys()]));
  return [...places]
    .filter((place) => isSteady(tallies, place))
    .map((place) => ({ place, rank: rankOf(place) }))
    .filter(({ rank }) => rank < UNLIKELY)
    .toSorted((a, b) => a.rank - b.rank)
    .map(({ place }) => place);
}

/** Whether a member named like a total equals the number of records that came. */
export function tellsWhole({ numbers, count }: Tally): boolean {
  return [...numbers].some(([place, value]) => rankOf(place) <= 1 && value === count);
}

/** A list that changes during the look may have one record more or less on each page. */
function isSteady(tallies: readonly Tally[], place: string): boolean {
  const telling = tallies.filter(({ numbers }) => numbers.has(place));
  const values = telling.map(({ numbers }) => numbers.get(place)!);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const isSame = most - least <= (rankOf(place) <= 1 ? Math.max(2, most / 100) : 0);
  return isSame && telling.every(({ count }, n) => values[n]! >= count) && telling.some(({ count }, n) => values[n]! > count);
}

function rankOf(place: string): number {
  const name = place
    .replace(/^.*[.@ ]/, '')
    .toLowerCase()
    .replaceAll(/[_-]/g, '');
  if (name === 'contentrange') return 3;
  if (/^(x)?total(records|count|results|items|elements|resources|hits)?$/.test(name)) return 0;
  if (OF_PAGE.test(name)) return UNLIKELY;
  if (name.includes('total')) return 1;
  return TOTAL.test(name) ? 2 : UNLIKELY;
}
