import type { Endpoint } from '../catalogue/endpoint.js';
import { clearLedgers } from '../db/tables/ledger.js';
import { findProof, type ListKey, noteVerified } from '../db/tables/lists.js';
import { lockWalk, succeedWalk } from '../db/tables/walks.js';
import type { Transaction } from '../db/transaction.js';
import { reconcile } from '../mirror/reconcile.js';
import { recordEvent } from '../notifications/events.js';
import type { OpenWalk } from './open-walk.js';
import type { Verdict } from './verification.js';

export type WalkOutcome = Exclude<Verdict, { kind: 'another-pass' }>;

/** Ends a walk that read its list to the end, with the deletions that it proved and the ledgers that nobody refers to any more. */
export async function endWalk(
  tx: Transaction,
  walk: OpenWalk,
  proved: WalkOutcome,
  endpoint: Endpoint,
  now: number,
): Promise<void> {
  await lockWalk(tx, walk);
  const { list, comparison } = walk;
  const parents = endpoint.parent === undefined ? undefined : await parentsVerifiedAt(tx, list, endpoint.parent, now);
  const outcome: WalkOutcome =
    parents === null && proved.kind === 'verified' ? { kind: 'unverified', reason: 'parents_unverified' } : proved;
  const isVerified = outcome.kind === 'verified';
  const keysDigest = walk.memory.digest;
  if (isVerified) {
    // No row need be looked for that might be gone where the pass has filled an empty list, or received the very keys of a walk that left no
    // other row living.
    const isNothingGone = walk.fillsEmptyList || comparison.hasSameKeys(keysDigest);
    const verified = { list, runId: walk.runId, walkId: walk.id, pass: walk.pass, isNothingGone };
    const { held, wasHeld } = await reconcile(tx, verified, endpoint.deleteGuard);
    // People are told of a hold when it opens; that a later walk replaced it is no news.
    if (held > 0 && !wasHeld) {
      const details = { resource: list.resource, run_id: walk.runId, count: held };
      await recordEvent(tx, { type: 'deletions_held', company: list, change: walk.id, details });
    }
    await noteVerified(tx, list, { walkId: walk.id, parents: parents ?? null });
  }
  await clearLedgers(tx, list);
  await succeedWalk(tx, {
    id: walk.id,
    keysDigest,
    reusable: isVerified && comparison.isReusable,
    finishedAt: new Date(now),
    proof: isVerified ? outcome.proof : null,
    unverifiedReason: isVerified ? null : outcome.reason,
  });
}

/** Parents that were proved longer ago may lack some that have come since. */
const PARENTS_MAX_AGE_MS = 6 * 3_600_000;

/**
 * When the parents were last verified, if that was by their newest walk and not long ago: only then are all of them known,
 * and a child that was not received is gone. Else null.
 */
async function parentsVerifiedAt(tx: Transaction, list: ListKey, parent: string, now: number): Promise<Date | null> {
  const proved = await findProof(tx, { ...list, resource: parent });
  return proved && proved.verifiedAt.getTime() > now - PARENTS_MAX_AGE_MS ? proved.verifiedAt : null;
}
