import type { Doubted, EndDoubt } from '../pagers/doubt.js';
import type { Advance, JsonObject, Pager } from '../pagers/pager.js';
import type { ReceivedPage } from './received-page.js';
import type { Proof, UnverifiedReason } from './verification.js';

/** A checkpoint older than this is not gone on from: too much may have changed upstream since. Quiet hours do not count. */
export const CHECKPOINT_MAX_AGE_MS = 6 * 3_600_000;

/** The walk's state as it is stored with every page: with the ledger, all that is needed to continue. */
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
  /** Why the end of the list may be none. */
  readonly doubt?: EndDoubt | undefined;
  /** The doubt in words, for a person. */
  readonly doubtDetail?: string | undefined;
  /** The pass has read the list to its end; only the verdict is missing. */
  readonly ended?: true | undefined;
  /** Paths of the privacy rules that have found a member in this pass; of a walk over many parents, in any pass. */
  readonly matched?: readonly string[] | undefined;
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
  /** Records of the parents before. */
  readonly received: number;
  readonly duplicates: number;
  /** The weakest proof of the parents before. */
  readonly proof?: Proof;
  /** Why the walk cannot be verified any more. */
  readonly reason?: UnverifiedReason;
  readonly reasonDetail?: string | undefined;
}

export function firstCheckpoint(pager: Pager): WalkCheckpoint {
  return { pager: pager.first(), pages: 0, rejected: 0, duplicates: 0, totalConstant: true, tokenRestarts: 0 };
}

/** The checkpoint after a page that counts; `duplicates` of its records have the id of another one. */
export function checkpointAfter(
  before: WalkCheckpoint,
  page: ReceivedPage,
  duplicates: number,
  pager: Pager,
  advance: Exclude<Advance<JsonObject>, { kind: 'again' }>,
): WalkCheckpoint {
  const { total = before.total } = page;
  const isEnd = advance.kind === 'done';
  const doubted = doubtOf(before) ?? page.denied ?? (isEnd ? advance.doubted : undefined);
  return {
    // Every member by its name: with a spread, a page takes several times as long here.
    pager: isEnd ? before.pager : advance.state,
    pages: before.pages + 1,
    rejected: before.rejected + page.rejected.length,
    duplicates: before.duplicates + duplicates,
    total,
    endIndex: isEnd ? pager.lengthAtEnd(before.pager, page.count) : before.endIndex,
    totalConstant: before.totalConstant && (before.total === undefined || before.total === total),
    previousDigest: before.previousDigest,
    tokenRestarts: before.tokenRestarts,
    distrustsTotal: before.distrustsTotal,
    doubt: doubted?.doubt,
    doubtDetail: doubted?.detail,
    ended: isEnd || undefined,
    parent: before.parent,
    matched: union(before.matched, page.matched),
  };
}

/** The checkpoint of a pass whose list ended with the pages that it has, since the service refused the page after them. */
export function checkpointAtEnd(before: WalkCheckpoint, pager: Pager, ending: Doubted | undefined): WalkCheckpoint {
  const doubted = doubtOf(before) ?? ending;
  const endIndex = pager.lengthAtEnd(before.pager, 0);
  return { ...before, endIndex, doubt: doubted?.doubt, doubtDetail: doubted?.detail, ended: true };
}

/** The doubt that the pages of a pass have left. */
export function doubtOf({ doubt, doubtDetail }: WalkCheckpoint): Doubted | undefined {
  return doubt && { doubt, detail: doubtDetail };
}

function union(some: readonly string[] | undefined, more: readonly string[] | undefined): readonly string[] | undefined {
  return some && more ? [...new Set([...some, ...more])] : (more ?? some);
}
