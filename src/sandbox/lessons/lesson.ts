import type { Resource } from '../company-spec.js';
import type { Effect } from '../faults.js';
import type { FetchedPage } from './answered-page.js';

/** The effect on one request: `count` is the number of requests before it, `now` the time in milliseconds since the epoch. */
export type RequestEffect = (count: number, now: number) => Effect | undefined;

/** How a lesson changes the sandbox while it is on. */
export type Act =
  /** Requests for the list meet this effect before they are served. */
  | { readonly kind: 'request'; readonly effect: Effect | RequestEffect }
  /** Access tokens of the company end, and each refresh is answered so. The refresh token stays unspent. */
  | { readonly kind: 'token'; readonly effect: Effect }
  /** Every page of the list is changed. May throw a Refusal. */
  | { readonly kind: 'page'; readonly change: (page: FetchedPage) => FetchedPage }
  /** Records of the list are not shown; `index` is their place when the lesson begins. */
  | { readonly kind: 'hide'; readonly hides: (index: number) => boolean }
  /** Every authorization that the company has given until now is refused. */
  | { readonly kind: 'revoke' };

/** Something that real services do, for a person to see what Muster makes of it. */
export interface Lesson {
  /** The word that the command takes, such as `total-text`. */
  readonly name: string;
  /** The sandbox's doings while the lesson is on, in a sentence. */
  readonly does: string;
  /** The outcome that Muster shows after the commands of `next`, in a sentence. */
  readonly see: string;
  /** Commands of `muster` to run next; `start` is a sync that is not waited for, since it may be put off for long. Default: `sync`. */
  readonly next?: readonly ('sync' | 'start' | 'holds' | 'companies')[];
  /** Lists that it can be about, first the default one. Default: each list, first `employees`. */
  readonly lists?: readonly Resource[];
  /** It concerns a list without any record, or one with at least so many. Default: 1. */
  readonly records?: 'none' | number;
  /** How long it lasts where nothing else is said. Default: until it is mended. */
  readonly seconds?: number;
  /** Members that the list's entry in the catalogue must have besides, as YAML. */
  readonly entry?: string;
  readonly act: Act;
}

/** The made-up companies have no list of so many records that fits on one page of its entry in examples/catalogue.yaml. */
export const SEVERAL_PAGES = 101;

/** How long faults last that pass: short enough to see the end of them while a run waits. */
export const PASSING_SECONDS = 45;
