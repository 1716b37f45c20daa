import type { ReceivedPage } from '../pagers/envelope.js';
import type { JsonObject, Pager } from '../pagers/pager.js';
import type { Proof, UnverifiedReason } from './verification.js';

/** The walk's state as it is kept with every page: all that is needed to go on, beside the ledger. */
export interface WalkCheckpoint {
  /** State of the pager: how to ask for the next page. */
  readonly pager: JsonObject;
  /** Number that the next page gets in the ledger. */
  readonly pages: number;
  readonly rejected: number;
  readonly duplicates: number;
  readonly total?: number;
  /** Index at which an offset list ended: how many records it had then. */
  readonly endIndex?: number;
  readonly totalConstant: boolean;
  /** Digest of the pass before this one. */
  readonly previousDigest?: string;
  /** How often a page token was lost and the walk began again. */
  readonly tokenRestarts: number;
  /** The list contradicted its own totals, so that this pass reads on to an empty page, and proves nothing. */
  readonly distrustsTotal?: true;
  /** The pass has read the list to its end; only the verdict is missing. */
  readonly ended?: true;
  /** Where a walk over the lists of many parents stands. */
  readonly parent?: ParentPlace;
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

/** The checkpoint behind a page that counts; `repeated` of its records shared their id with another. `pager` undefined = the end. */
export function checkpointAfter(
  before: WalkCheckpoint,
  page: ReceivedPage,
  repeated: number,
  pager: JsonObject | undefined,
): WalkCheckpoint {
  const offset = before.pager['offset'];
  const sameTotal = before.total === undefined || page.total === undefined || before.total === page.total;
  return {
    ...before,
    pager: pager ?? before.pager,
    pages: before.pages + 1,
    rejected: before.rejected + page.rejected.length,
    duplicates: before.duplicates + repeated,
    totalConstant: before.totalConstant && sameTotal,
    ...(page.total !== undefined && { total: page.total }),
    ...(pager === undefined && { ended: true }),
    ...(pager === undefined && typeof offset === 'number' && { endIndex: offset + page.keys.length }),
  };
}
