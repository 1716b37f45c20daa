import type { Endpoint } from '../catalogue/endpoint.js';
import type { ListAddress, SentRequest } from './probing.js';

/** The list to look at. */
export interface ListToLearn {
  /** Name of the entry. */
  readonly name: string;
  readonly address: ListAddress;
  /** The path as an entry has it, with `{company_id}`. */
  readonly path: string;
  /** Name of the further host of the API that has the list; undefined: {base_url} has. */
  readonly base?: string | undefined;
  /** Whether the method was said; else a list that is read by POST is asked so once GET was refused. */
  readonly isMethodGiven: boolean;
  /** The catalogue's present entry for it. */
  readonly known?: Endpoint | undefined;
  /** Whether a few records are to be shown. */
  readonly withSamples: boolean;
}

export const TOPICS = ['paging', 'envelope', 'total', 'ids', 'order', 'cap', 'overlap', 'etag', 'proof', 'catalogue'] as const;

/** Something that was seen, in a sentence, with the requests that showed it. */
export interface Finding {
  readonly about: (typeof TOPICS)[number];
  readonly says: string;
  readonly requests: readonly number[];
}

/**
 * The result of a look at a list. Its `outcome`:
 * - `confirmed`: the entry was walked, and the walk was what a proof needs, as far as it went.
 * - `unconfirmed`: there is an entry, and something in it is only guessed, or spoke against it.
 * - `nothing`: no entry fits.
 */
export interface LearnedList {
  readonly outcome: 'confirmed' | 'unconfirmed' | 'nothing';
  readonly findings: readonly Finding[];
  /** Sentences on what no request shows: what to look up in the service's documentation, and what to try next. */
  readonly lookUp: readonly string[];
  /** A part of a catalogue file, in YAML. */
  readonly entry: string | undefined;
  /** Texts of a few records, treated by the privacy rules of the catalogue's entry; only where they were asked for. */
  readonly samples: readonly string[];
  readonly requests: readonly SentRequest[];
}
