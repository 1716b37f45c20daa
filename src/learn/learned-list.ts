import type { Endpoint } from '../catalogue/endpoint.js';
import type { ListAddress, SentRequest } from './probing.js';

export interface ListToLearn {
  readonly name: string;
  readonly address: ListAddress;
  /** The path as an entry has it, with `{company_id}`. */
  readonly path: string;
  /** Name of the further host of the API that has the list; undefined: {base_url}. */
  readonly base?: string | undefined;
  /** Whether the caller gave the method. If not, POST is tried once GET was refused. */
  readonly isMethodGiven: boolean;
  /** The catalogue's present entry for it. */
  readonly known?: Endpoint | undefined;
  readonly withSamples: boolean;
}

export const TOPICS = ['paging', 'envelope', 'total', 'ids', 'order', 'cap', 'overlap', 'etag', 'proof', 'catalogue'] as const;

/** A finding in a sentence, with the requests that showed it. */
export interface Finding {
  readonly about: (typeof TOPICS)[number];
  readonly says: string;
  readonly requests: readonly number[];
}

/**
 * The result of a look at a list. Its `outcome`:
 * - `confirmed`: a rehearsal of the entry satisfied every condition of a proof on every page that it read.
 * - `unconfirmed`: there is an entry, but something in it is guessed, or contradicts it.
 * - `nothing`: no entry fits.
 */
export interface LearnedList {
  readonly outcome: 'confirmed' | 'unconfirmed' | 'nothing';
  readonly findings: readonly Finding[];
  /** Questions for the service's documentation that no request answers, and the next things to try. */
  readonly lookUp: readonly string[];
  /** A part of a catalogue file, in YAML. */
  readonly entry: string | undefined;
  /** Texts of a few records, redacted by the privacy rules of the catalogue's entry; empty unless requested. */
  readonly samples: readonly string[];
  readonly requests: readonly SentRequest[];
}
