import type { ReceivedPage } from '../pagers/envelope.js';
import type { JsonObject, Pager } from '../pagers/pager.js';
import type { Proof, UnverifiedReason } from './verification.js';

/** A checkpoint older than this is not gone on from: too much may have changed upstream since. */
export const CHECKPOINT_MAX_AGE_MS = 6 * 3_600_000;

/** The walk's state as it is kept with every page: all that is needed to go on, beside the ledger. */
export interface WalkCheckpoint {
  /** State of the pager: how to ask for the next page. */
  readonly pager: JsonObject;
  /** Number that the next page gets in the ledger. */
  readonly pages: number;
  readonly rejected: number;
  readonly duplicates: number;
  readonly total?: number | undefined;
  /** Index at which an offset list ended: how many records it had then. */
  readonly endIndex?: number | undefined;
  readonly totalConstant: boolean;
  /** Digest of the pass before this one. */
  readonly previousDigest?: string | undefined;
  /** How often a page token was lost and the walk began again. */
  readonly tokenRestarts: number;
  /** The list contradicted its own totals, so that this pass reads on to an empty page, and proves nothing. */
  readonly distrustsTotal?: true | undefined;
  /** The pass has read the list to its end; only the verdict is missing. */
  readonly ended?: true | undefined;
  /** Where a walk over the lists of many parents stands. */
  readonly parent?: ParentPlace | undefined;
}

/** The parent whose list is being read, and what came of the parents before it. */
export interface ParentPlace {
  readonly id: string;
  /** The walk that had proved the parents when the first of them was asked for. */
  readonly parentsWalkId?: string;
  /** First page of this parent's pass in the ledger. */
  readonly firstPage: number;
  /** Number of the pass over this parent's list, from 1. */
  readonly pass: number;
  /** Of the parents before. */
  readonly received: number;
  readonly duplicates: number;
  /** The weakest proof of the parents before. */
  readonly proof?: Proof;
  /** Why the walk cannot be verified any more. */
  readonly reason?: UnverifiedReason;
}

export function firstCheckpoint(pager: Pager): WalkCheckpoint {
  return { pager: pager.first(), pages: 0, rejected: 0, duplicates: 0, totalConstant: true, tokenRestarts: 0 };
}

/** With all members named: a spread takes longer than they do, and a new one cannot be forgotten. */
type Every<T> = { [K in keyof Required<T>]: T[K] };

/** The checkpoint behind a page that counts; `repeated` of its records shared their id with another. `pager` undefined = the end. */
export function checkpointAfter(
  before: WalkCheckpoint,
  page: ReceivedPage,
  repeated: number,
  pager: JsonObject | undefined,
): Every<WalkCheckpoint> {
  const { total = before.total } = page;
  const offset = before.pager['offset'];
  const isEnd = pager === undefined;
  return {
    pager: pager ?? before.pager,
    pages: before.pages + 1,
    rejected: before.rejected + page.rejected.length,
    duplicates: before.duplicates + repeated,
    total,
    endIndex: isEnd && typeof offset === 'number' ? offset + page.keys.length : undefined,
    totalConstant: before.totalConstant && (before.total === undefined || before.total === total),
    previousDigest: before.previousDigest,
    tokenRestarts: before.tokenRestarts,
    distrustsTotal: before.distrustsTotal,
    ended: isEnd ? true : undefined,
    parent: before.parent,
  };
}
