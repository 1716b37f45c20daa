import { plainName, type Sign } from '../pagers/around.js';
import { findName, type Reaction } from './find-name.js';
import type { KeyedPage, ListView } from './list-view.js';
import { namesInOrder } from './parameter-names.js';
import { inTitleCase } from './seen-page.js';

/** A way from a page to the next one. */
export type FoundChain =
  /** An address leads on. `place`: its place as a catalogue entry names it; undefined for the Link header. */
  | { readonly kind: 'link'; readonly place: string | undefined; readonly link: string }
  /** A token leads on, which the parameter `name` takes. */
  | { readonly kind: 'token'; readonly place: string; readonly name: string; readonly request: number }
  /** The id of the last record leads on, which the parameter `name` takes. */
  | { readonly kind: 'last-id'; readonly member: string; readonly name: string; readonly request: number };

const ADDRESS = /^(https?:)?\/|^\?|\?.*=/i;

/** The link to the next page that a page names: in a member or a header, else in the Link header. */
export function linkOf(signs: readonly Sign[]): Extract<FoundChain, { kind: 'link' }> | undefined {
  const links = signs.filter(({ kind, value }) => kind === 'name' && ADDRESS.test(String(value)));
  const ofMember = links.find(({ member }) => member !== 'header link');
  const sign = ofMember ?? links[0];
  return sign && { kind: 'link', place: ofMember && placeOf(ofMember), link: String(sign.value) };
}

/** Finds the parameter that takes the token which the page names, if it names one. */
export async function findToken(
  view: ListView,
  page: KeyedPage,
  size: Readonly<Record<string, number>>,
): Promise<Extract<FoundChain, { kind: 'token' }> | undefined> {
  const sign = page.signs.find(({ kind, value }) => kind === 'name' && !ADDRESS.test(String(value)));
  if (!sign) return undefined;
  const own = plainName(sign.member.replace(/^header (x-)?/, ''));
  const names = namesInOrder('token', []).toSorted((a, b) => likeness(b, own) - likeness(a, own));
  const found = await findName(names, leadingOn(view, page, size, String(sign.value)), {
    mayAsk: () => view.mayAsk(),
    likely: 2,
  });
  return found && { kind: 'token', place: placeOf(sign), name: found.name, request: found.effect.request };
}

/** Finds the parameter that takes the id of a page's last record. */
export async function findLastId(
  view: ListView,
  page: KeyedPage,
  size: Readonly<Record<string, number>>,
): Promise<Extract<FoundChain, { kind: 'last-id' }> | undefined> {
  const member = view.key;
  const last = page.keys.at(-1);
  if (typeof member !== 'string' || last === undefined) return undefined;
  const found = await findName(namesInOrder('lastId', []), leadingOn(view, page, size, last), {
    mayAsk: () => view.mayAsk(),
  });
  return found && { kind: 'last-id', member, name: found.name, request: found.effect.request };
}

/** Whether the page requested with the value follows the page that gave the value. */
function leadingOn(view: ListView, page: KeyedPage, size: Readonly<Record<string, number>>, value: string) {
  return async (names: readonly string[]): Promise<Reaction<KeyedPage>> => {
    const outcome = await view.ask({ ...size, ...Object.fromEntries(names.map((name) => [name, value])) }, true);
    if (outcome.kind !== 'page') return { kind: 'refused' };
    const begin = view.beginOf(outcome);
    const follows =
      begin !== undefined && (begin === -1 || begin === page.keys.length) && !outcome.keys.some((key) => page.keys.includes(key));
    return follows ? { kind: 'effect', effect: outcome } : { kind: 'none' };
  };
}

/** How similar a parameter's name is to the name of the member that has the token. */
function likeness(name: string, own: string): number {
  const plain = plainName(name.replace(/[[\]$]/g, ''));
  const bare = own.replace(/^next/, '');
  if (own === 'nextpagetoken' && name === 'continuationToken') return 4;
  if (plain === bare) return 3;
  return plain === own ? 1 : 0;
}

/** The place as a catalogue entry names it. */
function placeOf({ member }: Sign): string {
  const [, header] = /^header (.+)$/.exec(member) ?? [];
  return header === undefined ? member : `header ${inTitleCase(header)}`;
}
