import { stringify } from 'yaml';
import type { Endpoint } from '../catalogue/endpoint.js';
import { validateCatalogue } from '../catalogue/validate.js';
import { type Fault, FaultsError } from '../core/errors.js';
import type { IdCandidate } from './ids.js';

/** A catalogue entry, as a file would have it. */
export interface EntryDraft {
  readonly method: 'GET' | 'POST';
  readonly base?: string;
  readonly path: string;
  readonly query?: Readonly<Record<string, string | boolean>>;
  readonly body?: Readonly<Record<string, unknown>>;
  readonly pager: Readonly<Record<string, string | number>>;
  readonly envelope?: string;
  readonly fields?: Readonly<Record<string, string>>;
  readonly id?: readonly IdCandidate[];
  readonly order?: 'unstable';
  readonly etag?: 'ignore';
}

/** The list that an entry describes, and why a catalogue would be refused with it: then there is none. */
export function endpointOf(
  name: string,
  draft: EntryDraft,
): { readonly endpoint?: Endpoint | undefined; readonly faults: readonly Fault[] } {
  try {
    return { endpoint: validateCatalogue({ [name]: draft }, 'the entry that was found').endpoints[0], faults: [] };
  } catch (error) {
    if (error instanceof FaultsError) return { faults: error.faults };
    throw error;
  }
}

/** The comments above the members of an entry, line by line. */
export type EntryComments = Readonly<Partial<Record<keyof EntryDraft | 'head', readonly string[]>>>;

/** The entry as a part of a catalogue file in YAML. */
export function entryText(name: string, draft: EntryDraft, comments: EntryComments): string {
  const lines = (comments.head ?? []).map((line) => `# ${line}`);
  lines.push(`${name}:`);
  for (const member of MEMBERS) {
    const value = draft[member];
    if (value === undefined) continue;
    for (const line of comments[member] ?? []) lines.push(`  # ${line}`);
    const style = typeof value === 'string' ? {} : { collectionStyle: 'flow' as const };
    lines.push(
      `  ${member}: ${stringify(value, { ...style, lineWidth: 0, singleQuote: true, flowCollectionPadding: !Array.isArray(value) }).trim()}`,
    );
  }
  return `${lines.join('\n')}\n`;
}

const MEMBERS = ['method', 'base', 'path', 'query', 'body', 'pager', 'envelope', 'fields', 'id', 'order', 'etag'] as const;

/** The places of a page's values: dot paths from the root of the response, or `header NAME`. */
export interface ValuePlaces {
  /** [] = the response is the array. */
  readonly data: readonly string[];
  readonly total?: string | undefined;
  readonly hasNext?: string | undefined;
  readonly next?: string | undefined;
}

/** The members of an entry for these places, without the ones that are defaults. `defaults`: the places of the style. */
export function placesOf(
  { data, ...values }: ValuePlaces,
  defaults: Readonly<Partial<Record<'total' | 'hasNext' | 'next', string>>>,
): Pick<EntryDraft, 'envelope' | 'fields'> {
  if (data.length === 0) return { fields: { data: 'none', ...named(values) } };
  const around = data.slice(0, -1).join('.');
  const isIn = (place: string) => place.startsWith('header ') || place.startsWith('last ') || place.startsWith(`${around}.`);
  const hasEnvelope =
    around !== '' && data.at(-1) === 'data' && Object.values(named(values)).every((place) => place === 'none' || isIn(place));
  const inside = (place: string) => (hasEnvelope && place.startsWith(`${around}.`) ? place.slice(around.length + 1) : place);
  const places: Record<string, string> = Object.fromEntries(
    Object.entries(named(values)).map(([field, place]) => [field, inside(place)]),
  );
  const dataPlace = hasEnvelope ? 'data' : data.join('.');
  const isDefault = places['next'] === defaults.next && places['hasNext'] === defaults.hasNext;
  const fields = {
    ...(dataPlace !== 'data' && { data: dataPlace }),
    ...(places['total'] !== undefined && places['total'] !== defaults.total && { total: places['total'] }),
    ...(!isDefault && named({ hasNext: places['hasNext'], next: places['next'] })),
  };
  return { ...(hasEnvelope && { envelope: around }), ...(Object.keys(fields).length > 0 && { fields }) };
}

function named(values: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).filter((each): each is [string, string] => each[1] !== undefined));
}
