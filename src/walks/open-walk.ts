import type { OwnQuietHours } from '../db/tables/connections.js';
import type { WalkClaim } from '../db/tables/walks.js';
import type { ListSpan } from '../observability/tracing.js';
import type { Sign } from '../pagers/around.js';
import type { ListSuppressions } from '../privacy/suppressions.js';
import type { Comparison } from './comparison.js';
import type { PassMemory } from './pass-memory.js';
import type { WalkCheckpoint } from './walk-checkpoint.js';

/**
 * Attempts of a run after which a refusal in HTML or plain text counts for a list that was never received: after some four minutes it is the service that
 * knows no such path, and hardly a gateway that fails for a moment.
 */
export const ATTEMPTS_BEFORE_ANY_WORDS = 5;

/** A walk that this worker has taken: no other worker can write to its list before it takes the walk in turn. */
export interface OpenWalk extends WalkClaim, OwnQuietHours {
  readonly runId: string;
  /** The grant under which all of it is received. */
  readonly grantNumber: number;
  /** Grows with every commit. */
  pages: number;
  /** The record member that is the id, once a page has shown it. */
  idField?: string;
  /** The list was seen in another order than in an earlier walk. */
  unstable: boolean;
  /** An earlier walk has read the list to its end, proved or not. */
  readonly wasRead: boolean;
  /** When the list was last proved before, by the database's clock; null if it never was. */
  readonly lastVerifiedAt: Date | null;
  /** The company may lack the list: the catalogue calls it optional, and nothing of it was ever received. */
  readonly mayBeUnavailable: boolean;
  /** Whether it does so where the refusal is not in the API's own words, too: the run was put off for it already, or the list was unavailable before. */
  readonly takesAnyWords: boolean;
  readonly pass: number;
  /** Undefined = from the start. */
  readonly checkpoint?: WalkCheckpoint;
  readonly memory: PassMemory;
  /** How ETags were used so far; shared by all passes of the walk. */
  readonly etags: { isUsed: boolean; isFalse: boolean };
  /** The sign that more records follow which its last page has, and which the list's total or its own words overrule. */
  overruled?: Sign | undefined;
  /** Decides which records need no comparison with the mirror. Replaced by compareEverything once the pass has received a record with two texts. */
  comparison: Comparison;
  /** For a child list, the walk that had proved the parents when this one was opened; undefined when none had. */
  readonly parentsWalkId?: string;
  /** The list's suppressions; undefined where no record was forgotten. A change of them takes the list from this walk. */
  readonly suppressions?: ListSuppressions;
  readonly span?: ListSpan | undefined;
  /** Whether the mirror holds nothing of the list but what this pass has received. */
  fillsEmptyList: boolean;
}
