import type { Doubted, EndDoubt } from '../pagers/doubt.js';
import type { Linkage } from '../pagers/pager.js';

/** The findings of one pass that has read its list to the end. */
export interface PassFindings {
  /** How the pages hang together; `none` also where the order of the list cannot be relied on. */
  readonly linkage: Linkage;
  /** Why the end of the list may be none. */
  readonly doubted?: Doubted | undefined;
  /** Number of the pass within the walk, from 1. */
  readonly pass: number;
  /** Distinct records received in this pass. */
  readonly distinct: number;
  readonly duplicates: number;
  readonly rejected: number;
  /**
   * totalRecords as the pass said it last; where no envelope gives it, the index at which the list ended. Undefined only for
   * token lists, which need not give it.
   */
  readonly total?: number;
  /** Whether totalRecords was the same on every page of the pass that gave it. */
  readonly totalConstant: boolean;
  /** The list contradicted its totals, and the pass was read without them. */
  readonly contradicted?: boolean;
  /** Order-independent digest of the keys received in this pass, and of the pass before where that was in no other doubt. */
  readonly digest: string;
  readonly previousDigest?: string;
}

export type Proof = 'join' | 'token-chain' | 'two-pass';
/** Why a walk that ended proves nothing; docs/verification.md explains each. */
export type UnverifiedReason =
  | 'rejected_records'
  | 'duplicate_ids'
  | 'total_mismatch'
  | 'total_changed'
  | 'passes_disagree'
  | 'contradicting_envelope'
  | 'never_ended'
  | EndDoubt
  | 'parent_refused'
  | 'unavailable'
  | 'parents_unverified';

/** Where a refusal of the service decided. */
interface RefusedWalk {
  readonly serviceSays?: string | undefined;
}

export type Verdict =
  | { readonly kind: 'verified'; readonly proof: Proof }
  | { readonly kind: 'another-pass'; readonly doubt?: UnverifiedReason }
  | ({ readonly kind: 'unverified'; readonly reason: UnverifiedReason; readonly detail?: string | undefined } & RefusedWalk);

/** Passes that a walk may take to be verified. */
const MAX_PASSES = 3;

/**
 * Whether the pass proves that every record that existed throughout it was received. Pure.
 *
 * Assumes, by proof: `join`, that the service keeps the order of its records; `token-chain`, that a chain of page tokens misses
 * none; `two-pass`, that no record leaves and comes back within them: of a list of as many records as were received, twice the
 * same, none can be missing, however it is ordered. All assume that totalRecords, where given, is truthful. Calling an incomplete
 * list verified is the worse error: any doubt is another pass.
 */
export function verify(findings: PassFindings): Verdict {
  if (findings.rejected > 0) return { kind: 'unverified', reason: 'rejected_records' };
  if (findings.contradicted) return { kind: 'unverified', reason: 'contradicting_envelope' };
  if (findings.doubted) return { kind: 'unverified', reason: findings.doubted.doubt, detail: findings.doubted.detail };
  const doubt = doubtOf(findings);
  if (doubt === undefined) return { kind: 'verified', proof: proofOf(findings.linkage) };
  return findings.pass < MAX_PASSES ? { kind: 'another-pass', doubt } : { kind: 'unverified', reason: doubt };
}

/** The proof that a pass gives whose pages hang together so. */
export function proofOf(linkage: Linkage): Proof {
  return linkage === 'none' ? 'two-pass' : linkage;
}

function doubtOf({
  linkage,
  distinct,
  duplicates,
  total,
  totalConstant,
  digest,
  previousDigest,
}: PassFindings): UnverifiedReason | undefined {
  if (!totalConstant) return 'total_changed';
  if (total !== undefined && total !== distinct)
    return duplicates > 0 && distinct + duplicates === total ? 'duplicate_ids' : 'total_mismatch';
  if (linkage === 'none' && digest !== previousDigest) return 'passes_disagree';
  return undefined;
}
