import type { Resource } from '../company-spec.js';
import type { Effect } from '../faults.js';
import type { FetchedPage } from './answered-page.js';

/** The effect on one request: `count` is the number of earlier requests, `now` the time in milliseconds since the epoch. */
export type RequestEffect = (count: number, now: number) => Effect | undefined;

/** How an active lesson changes the sandbox. */
export type Act =
  /** Requests for the list have this effect before they are served. */
  | { readonly kind: 'request'; readonly effect: Effect | RequestEffect }
  /** Access tokens of the company end, and each refresh has this effect. The refresh token stays unspent. */
  | { readonly kind: 'token'; readonly effect: Effect }
  /** Changes every page of the list. May throw a Refusal. */
  | { readonly kind: 'page'; readonly change: (page: FetchedPage) => FetchedPage }
  /** Hides records of the list; `index` is their place when the lesson begins. */
  | { readonly kind: 'hide'; readonly hides: (index: number) => boolean }
  /** Refuses all existing authorizations of the company. */
  | { readonly kind: 'revoke' };

/** A failure of real services that shows people how Muster reacts. */
export interface Lesson {
  /** Its name in the command, such as `total-text`. */
  readonly name: string;
  /** How the sandbox behaves, in a sentence. */
  readonly does: string;
  /** The outcome in Muster after the commands of `next`, in a sentence. */
  readonly see: string;
  /** Commands of `muster` to run next. `start` is a sync without waiting, since it may be retried for long. Default: `sync`. */
  readonly next?: readonly ('sync' | 'start' | 'holds' | 'companies')[];
  /** Lists that the lesson can break; the first is the default. Default: every list, first `employees`. */
  readonly lists?: readonly Resource[];
  /** The list must have no record, or at least this many. Default: 1. */
  readonly records?: 'none' | number;
  /** Its usual duration. Default: until it is mended. */
  readonly seconds?: number;
  /** Further members that the list's entry in the catalogue needs, as YAML. */
  readonly entry?: string;
  readonly act: Act;
}

/** A list with this many records has several pages in every made-up company, with the entries of examples/catalogue.yaml. */
export const SEVERAL_PAGES = 101;

/** The duration of faults that pass: short enough to see their end while a run waits. */
export const PASSING_SECONDS = 45;

const HTML = { 'content-type': 'text/html; charset=utf-8' };

/** A refusal by the API: a code and a sentence as JSON. */
export function refusal(status: number, error: string, message: string): Act {
  return { kind: 'request', effect: { kind: 'status', status, body: JSON.stringify({ error, message }) } };
}

/** An HTML page, as a gateway or firewall in front of the API sends it. */
export function htmlAnswer(status: number, title: string, headers: Readonly<Record<string, string>> = {}): Effect {
  const body = `<!doctype html><html><head><title>${title}</title></head><body><h1>${title}</h1></body></html>`;
  return { kind: 'status', status, headers: { ...HTML, ...headers }, body };
}
