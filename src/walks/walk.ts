import type { Endpoint } from '../catalogue/endpoint.js';
import { pagerFor } from '../pagers/registry.js';
import type { OpenWalk } from './open-walk.js';
import { firstCheckpoint } from './walk-checkpoint.js';
import { walkChildren } from './walk-children.js';
import { type WalkDependencies, type WalkOver, walkPass } from './walk-pass.js';
import { carriedOn, judge, linkageOf } from './walk-verdict.js';

/**
 * Walks a list from its checkpoint to its end, in as many passes as it takes to verify it. Pages are committed in order, several
 * at once where they have come. Returns `yielded` when it stopped early: the checkpoint stands.
 */
export async function walkList(
  opened: OpenWalk,
  endpoint: Endpoint,
  deps: WalkDependencies,
  signal: AbortSignal,
): Promise<WalkOver> {
  if (endpoint.parent !== undefined) return walkChildren(opened, endpoint, deps, signal);
  const pager = pagerFor(endpoint);
  let walk = opened;
  let checkpoint = walk.checkpoint ?? firstCheckpoint(pager);
  try {
    for (;;) {
      const end = await walkPass(walk, endpoint, pager, checkpoint, deps, signal);
      if (end.kind === 'yielded') return 'yielded';
      const isJoined = end.kind === 'end' && linkageOf(walk, endpoint, pager, end.checkpoint) === 'join';
      if (isJoined) await deps.store.recordOrder(walk);
      const verdict = judge(walk, endpoint, pager, checkpoint, end);
      if (verdict.kind !== 'another-pass') {
        await deps.store.finish(
          walk,
          { ...verdict, matched: 'checkpoint' in end ? end.checkpoint.matched : undefined },
          endpoint,
        );
        return end.kind === 'unavailable' ? end : 'finished';
      }
      checkpoint = { ...firstCheckpoint(pager), ...carriedOn(walk, checkpoint, end, verdict) };
      walk = await deps.store.beginPass(walk, endpoint, walk.pass + 1, checkpoint);
    }
  } finally {
    walk.comparison.close();
  }
}
