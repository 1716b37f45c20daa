import type { Endpoint } from '../catalogue/endpoint.js';
import { MusterError } from '../core/errors.js';
import type { Linkage, Pager } from '../pagers/pager.js';
import type { OpenWalk } from './open-walk.js';
import { type PassFindings, type Verdict, verify } from './verification.js';
import { doubtOf, type WalkCheckpoint } from './walk-checkpoint.js';
import type { PassEnd } from './walk-pass.js';

/** A page token that is lost again and again is a list that cannot be walked so slowly, or at all. */
const MAX_TOKEN_RESTARTS = 3;

export type EndOfPass = Exclude<PassEnd, { kind: 'yielded' }>;

/** Decides what a pass that ended proves, or what follows from one that did not get to the end of the list. */
export function judge(walk: OpenWalk, endpoint: Endpoint, pager: Pager, from: WalkCheckpoint, end: EndOfPass): Verdict {
  switch (end.kind) {
    case 'end':
      return verify(findingsOf(walk, endpoint, pager, end.checkpoint));
    case 'endless':
      return { kind: 'unverified', reason: 'never_ended' };
    case 'parent-gone':
      return { kind: 'unverified', reason: 'parent_refused', serviceSays: end.serviceSays };
    case 'unavailable':
      return { kind: 'unverified', reason: 'unavailable', serviceSays: end.serviceSays };
    case 'contradicted':
    case 'false-etags':
      return { kind: 'another-pass' };
    case 'token-lost':
      if (from.tokenRestarts < MAX_TOKEN_RESTARTS) return { kind: 'another-pass' };
      throw end.error.code === 'page_token_loop' ? end.error : tokenExpired(endpoint, end.error);
  }
}

/** The members of this pass's checkpoint that the next pass needs. */
export function carriedOn(
  walk: OpenWalk,
  from: WalkCheckpoint,
  end: EndOfPass,
  verdict: Verdict,
): Partial<Pick<WalkCheckpoint, 'tokenRestarts' | 'previousDigest' | 'distrustsTotal'>> {
  if (end.kind === 'contradicted') return { distrustsTotal: true };
  if (end.kind === 'token-lost') return { tokenRestarts: from.tokenRestarts + 1 };
  const isSound = verdict.kind === 'another-pass' && verdict.doubt === 'passes_disagree';
  return { tokenRestarts: from.tokenRestarts, ...(isSound && { previousDigest: walk.memory.digest }) };
}

function findingsOf(walk: OpenWalk, endpoint: Endpoint, pager: Pager, checkpoint: WalkCheckpoint): PassFindings {
  const { totalConstant, rejected, duplicates, previousDigest, tokenRestarts } = checkpoint;
  const total = checkpoint.total ?? checkpoint.endIndex;
  return {
    linkage: linkageOf(walk, endpoint, pager, checkpoint),
    doubted: doubtOf(checkpoint),
    pass: (checkpoint.parent?.pass ?? walk.pass) - tokenRestarts,
    distinct: walk.memory.size,
    digest: walk.memory.digest,
    rejected,
    duplicates,
    totalConstant,
    contradicted: checkpoint.distrustsTotal === true,
    ...(total !== undefined && { total }),
    ...(previousDigest !== undefined && { previousDigest }),
  };
}

/** How the pages of the pass hang together. An overlap shows nothing where the order of the list cannot be relied on. */
export function linkageOf({ unstable }: OpenWalk, { order }: Endpoint, pager: Pager, checkpoint: WalkCheckpoint): Linkage {
  const linkage = pager.linkage(checkpoint.pager);
  return linkage === 'join' && (order === 'unstable' || unstable) ? 'none' : linkage;
}

function tokenExpired({ resource }: Endpoint, cause: MusterError): MusterError {
  return new MusterError(
    'page_token_expired',
    `The page tokens of the list ${resource} expired before the list was read, ${MAX_TOKEN_RESTARTS + 1} times in a row. ` +
      'Raise its size in the catalogue, so that the walk takes fewer requests; if no second page ever came, check fields.next and pager.tokenName.',
    { cause, details: { resource } },
  );
}
