import type { PageInput } from '../pagers/pager.js';
import { KNOWN_NAMES } from './parameter-names.js';
import type { ListAddress, Outcome, Probing } from './probing.js';
import { wantedBy } from './refusal-words.js';
import type { SeenPage } from './seen-page.js';

/** The size requested first: enough records to see where another page begins. */
const WIDE = 20;

/** A first page, and the request that brought it. */
export interface FirstLook {
  readonly address: ListAddress;
  readonly page: SeenPage;
  readonly request: number;
  /** Parameters of the request in addition to the constants. */
  readonly asked: Readonly<Record<string, number>>;
  /** Names that the service mentioned in refusals. */
  readonly hints: readonly string[];
}

export interface NoLook {
  readonly address: ListAddress;
  readonly last: Exclude<Outcome, { kind: 'page' }>;
}

/** Requests that may be spent on getting a first page. */
const MOST_ATTEMPTS = 7;
const ALL_SIZES = Object.fromEntries(KNOWN_NAMES.size.map((name) => [name, WIDE]));
const REFUSED_FOR_PARAMETERS = new Set([400, 422, 406, 413]);
const WRONG_METHOD = new Set([404, 405, 501]);
/** Paths that services read by POST: the last segment names a query. */
const READ_BY_POST = /\/(list|search|query|find)$/i;

export function inputOf(
  { method }: Pick<ListAddress, 'method'>,
  parameters: Readonly<Record<string, number | string>>,
): PageInput {
  if (method === 'POST') return { body: parameters };
  return { query: Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, String(value)])) };
}

/**
 * Asks until a page comes: without parameters, then with the names in the service's refusals, then with all known names of a size at once.
 * Throws RequestsSpent, and what `Probing.ask` throws.
 */
export async function lookFirst(probing: Probing, given: ListAddress, isMethodGiven: boolean): Promise<FirstLook | NoLook> {
  let address = given;
  const asked: Record<string, number> = {};
  const hints = new Set<string>();
  let last: NoLook['last'] | undefined;
  let isTiredOfHints = false;
  for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt += 1) {
    const outcome = await probing.ask(address, inputOf(address, asked));
    if (outcome.kind === 'page') return { address, page: outcome.page, request: outcome.request, asked, hints: [...hints] };
    last = outcome;
    const status = outcome.status ?? 0;
    if (!isMethodGiven && address.method === 'GET' && WRONG_METHOD.has(status) && READ_BY_POST.test(address.path)) {
      address = byPost(address);
      continue;
    }
    const isTooLarge = outcome.kind === 'no-list' ? outcome.isTooLarge : outcome.error.code === 'response_too_large';
    if (isTooLarge && !isTiredOfHints) {
      // Some services read a size only together with a page number.
      isTiredOfHints = true;
      Object.assign(asked, ALL_SIZES, { page: 1 });
      continue;
    }
    if (outcome.kind !== 'refused' || !REFUSED_FOR_PARAMETERS.has(status)) break;
    const wanted = wantedBy(outcome.error.serviceSays);
    for (const name of wanted.names) hints.add(name);
    const constants = Object.entries(wanted.constants).filter(
      ([name]) => !isPaging(name) && constantOf(address, name) === undefined,
    );
    if (constants.length > 0) {
      address = withConstants(address, Object.fromEntries(constants));
      continue;
    }
    const sizes = wanted.names.filter((name) => KNOWN_NAMES.size.includes(name) && !(name in asked));
    const places = wanted.names.filter((name) => KNOWN_NAMES.place.includes(name) && !(name in asked));
    if (sizes.length + places.length > 0 && !isTiredOfHints) {
      for (const name of sizes) asked[name] = WIDE;
      for (const name of places) asked[name] = 1;
      continue;
    }
    if (isTiredOfHints) break;
    isTiredOfHints = true;
    Object.assign(asked, ALL_SIZES);
  }
  return { address, last: last! };
}

function byPost(address: ListAddress): ListAddress {
  return { ...address, method: 'POST' };
}

function isPaging(name: string): boolean {
  return KNOWN_NAMES.size.includes(name) || KNOWN_NAMES.place.includes(name);
}

function constantOf({ method, query, body }: ListAddress, name: string): unknown {
  return method === 'POST' ? body[name] : query[name];
}

function withConstants(address: ListAddress, constants: Readonly<Record<string, string>>): ListAddress {
  return address.method === 'POST'
    ? { ...address, body: { ...address.body, ...constants } }
    : { ...address, query: { ...address.query, ...constants } };
}
