import type { Endpoint } from '../catalogue/endpoint.js';
import type { Database } from '../db/connection/database.js';
import { inTransaction, type Transaction, WHOLE_LIST_MS } from '../db/connection/transaction.js';
import { findProof, findUnavailable, type ListKey, UNAVAILABLE } from '../db/tables/lists.js';
import { lockWalk, succeedWalk, type WalkEnd } from '../db/tables/walks.js';
import { type Reconciliation, reconcile } from '../mirror/reconcile.js';
import { recordEvent } from '../notifications/events.js';
import type { WorkMetrics } from '../observability/work-metrics.js';
import type { OpenWalk } from './open-walk.js';
import type { UnverifiedReason, Verdict } from './verification.js';

export type WalkOutcome = Exclude<Verdict, { kind: 'another-pass' }>;

/** How a walk ends, with the paths of the privacy rules that found a member in it. */
export type WalkEnding = WalkOutcome & { readonly matched?: readonly string[] | undefined };

/**
 * Ends a walk that read its list to the end, with the deletions that it proved and the ledgers that no walk refers to any more: one step, or
 * a transaction where rows may be gone. `parentsSince`: parents that were proved earlier prove nothing any more. Throws `fenced`.
 */
export async function endWalk(
  db: Database,
  walk: OpenWalk,
  { matched = [], ...proved }: WalkEnding,
  endpoint: Endpoint,
  { now, parentsSince, work }: { readonly now: number; readonly parentsSince: number; readonly work: WorkMetrics | undefined },
): Promise<void> {
  const { list, comparison, span } = walk;
  const parents = endpoint.parent === undefined ? undefined : await parentsVerifiedAt(db, list, endpoint.parent, parentsSince);
  const outcome: WalkOutcome =
    parents === null && proved.kind === 'verified'
      ? { kind: 'unverified', reason: await reasonOfParents(db, walk, endpoint.parent!) }
      : proved;
  const isVerified = outcome.kind === 'verified';
  span?.add(isVerified ? { 'muster.list.proof': outcome.proof } : { 'muster.list.unverified_reason': outcome.reason });
  const keysDigest = walk.memory.digest;
  const end: WalkEnd = {
    keysDigest,
    reusable: isVerified && comparison.isReusable,
    finishedAt: new Date(now),
    proof: isVerified ? outcome.proof : null,
    unverifiedReason: isVerified ? null : outcome.reason,
    unverifiedDetail: isVerified ? null : (outcome.detail ?? null),
    serviceSays: isVerified ? null : (outcome.serviceSays ?? null),
    parents: parents ?? null,
    etags: walk.etags,
    unmatchedRules: Object.keys(endpoint.privacy?.rules ?? {}).filter((path) => !matched.includes(path)),
  };
  // No row need be looked for that might be gone where the pass has filled an empty list, or received the very keys of a walk that left no
  // other row living.
  const mayHaveGone = isVerified && !walk.fillsEmptyList && !comparison.hasSameKeys(keysDigest);
  if (mayHaveGone) {
    const settle = async (tx: Transaction) => {
      await lockWalk(tx, walk);
      const { deleted } = await reconcileRows(tx, walk, endpoint);
      await succeedWalk(tx, walk, end);
      return deleted;
    };
    const deleted = await inTransaction(db, settle, { timeoutMs: WHOLE_LIST_MS });
    work?.recordsDeleted(list, deleted);
  } else await succeedWalk(db, walk, end);
  work?.walkEnded(list, isVerified ? 'verified' : outcome.reason === UNAVAILABLE ? UNAVAILABLE : 'unverified');
  if (isVerified && walk.lastVerifiedAt) work?.proofReplaced(list, (now - walk.lastVerifiedAt.getTime()) / 1_000);
}

/** A company that does not have the list of the parents has no list of theirs, either. */
async function reasonOfParents(db: Database, { list, wasRead, pages }: OpenWalk, parent: string): Promise<UnverifiedReason> {
  const isLacking = !wasRead && pages === 0 && (await findUnavailable(db.prisma, list)).includes(parent);
  return isLacking ? 'unavailable' : 'parents_unverified';
}

async function reconcileRows(tx: Transaction, { id, list, runId, pass }: OpenWalk, endpoint: Endpoint): Promise<Reconciliation> {
  const found = await reconcile(tx, { list, runId, walkId: id, pass }, endpoint.deleteGuard);
  const details = { resource: list.resource, run_id: runId };
  // People are told of a hold when it opens; that a later walk replaced or renewed it is no news.
  if (found.held > 0 && !found.wasHeld)
    await recordEvent(tx, { type: 'deletions_held', company: list, change: id, details: { ...details, count: found.held } });
  if (found.opensGrantHold) {
    const forGrant = { ...details, count: found.heldForGrant, cause: 'grant' };
    await recordEvent(tx, { type: 'deletions_held', company: list, change: `${id} grant`, details: forGrant });
  }
  return found;
}

/** Parents that were proved longer ago may lack some that have come since. Quiet hours do not count: no list could be read over them otherwise. */
export const PARENTS_MAX_AGE_MS = 6 * 3_600_000;

/**
 * When the parents were last verified, if that was by their newest walk, under the present grant, and not long ago: only then are all of them known,
 * and a child that was not received is gone. Else null.
 */
async function parentsVerifiedAt({ prisma }: Database, list: ListKey, parent: string, since: number): Promise<Date | null> {
  const proved = await findProof(prisma, { ...list, resource: parent });
  return proved && proved.verifiedAt.getTime() > since ? proved.verifiedAt : null;
}
