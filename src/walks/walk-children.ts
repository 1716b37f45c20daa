import type { Endpoint } from '../catalogue/endpoint.js';
import type { Pager } from '../pagers/pager.js';
import { pagerFor } from '../pagers/registry.js';
import type { OpenWalk } from './open-walk.js';
import { PassMemory } from './pass-memory.js';
import { type Proof, proofOf } from './verification.js';
import { firstCheckpoint, type ParentPlace, type WalkCheckpoint } from './walk-checkpoint.js';
import type { WalkOutcome } from './walk-end.js';
import { type WalkDependencies, type WalkOver, walkPass } from './walk-pass.js';
import { carriedOn, judge } from './walk-verdict.js';

/**
 * Walks a child list: the list of every living parent, one after the other in the order of their ids, as ONE walk with one
 * checkpoint and one ledger. Every parent's list is proved for itself; the walk is verified when all of them are, and when
 * the parents were (docs/decisions/0008).
 */
export async function walkChildren(
  opened: OpenWalk,
  endpoint: Endpoint,
  deps: WalkDependencies,
  signal: AbortSignal,
): Promise<WalkOver> {
  const pager = pagerFor(endpoint);
  let walk = opened;
  let checkpoint = walk.checkpoint ?? (await firstOfNext(walk, endpoint, pager, deps, undefined));
  let last: ParentPlace | undefined;
  /** Pages of the walk, and of the walks that it continues. */
  let pages = 0;
  let serviceSays: string | undefined;
  let matched = checkpoint?.matched;
  while (checkpoint) {
    const end = await walkPass(walk, endpoint, pager, checkpoint, deps, signal);
    if (end.kind === 'yielded') return 'yielded';
    const verdict = judge(walk, endpoint, pager, checkpoint, end);
    if (verdict.kind === 'another-pass') {
      checkpoint = anotherPass(checkpoint, pager, carriedOn(walk, checkpoint, end, verdict));
      walk = await deps.store.beginPass(walk, endpoint, walk.pass, checkpoint);
      continue;
    }
    const read = 'checkpoint' in end ? end.checkpoint : checkpoint;
    last = settled(walk, read, verdict);
    ({ matched, pages } = read);
    const next = await firstOfNext(walk, endpoint, pager, deps, { ...last, pages: read.pages });
    checkpoint = next && { ...next, matched };
    if (end.kind === 'parent-gone') ({ serviceSays } = end);
    // It had no page whose commit would keep the place after it.
    if (end.kind === 'parent-gone' && checkpoint) walk = await deps.store.beginPass(walk, endpoint, walk.pass, checkpoint);
    else walk = { ...walk, memory: new PassMemory() };
    // The checkpoint follows the parent that was read.
    if (checkpoint && deps.shouldYield()) return 'yielded';
  }
  const proof = last?.proof ?? proofOf(pager.linkage(pager.first()));
  // The company has parents, and none of them has the list.
  const isUnavailable = walk.mayBeUnavailable && walk.pages === 0 && pages === 0 && last?.reason === 'parent_refused';
  const outcome: WalkOutcome = isUnavailable
    ? { kind: 'unverified', reason: 'unavailable', serviceSays }
    : last?.reason
      ? { kind: 'unverified', reason: last.reason, detail: last.reasonDetail }
      : { kind: 'verified', proof };
  await deps.store.finish(walk, { ...outcome, matched }, endpoint);
  return isUnavailable ? { kind: 'unavailable', serviceSays } : 'finished';
}

/** The checkpoint at the beginning of the next parent's list; undefined when there is no further parent. */
async function firstOfNext(
  walk: OpenWalk,
  endpoint: Endpoint,
  pager: Pager,
  { store }: WalkDependencies,
  previous: (ParentPlace & { readonly pages: number }) | undefined,
): Promise<WalkCheckpoint | undefined> {
  const id = await store.parentAfter(walk, endpoint.parent!, previous?.id);
  if (id === undefined) return undefined;
  const { parentsWalkId } = walk;
  const { pages, ...before } = previous ?? { pages: 0, ...(parentsWalkId && { parentsWalkId }) };
  return {
    ...firstCheckpoint(pager),
    pages,
    parent: { received: 0, duplicates: 0, ...before, id, firstPage: pages, pass: 1 },
  };
}

function anotherPass(checkpoint: WalkCheckpoint, pager: Pager, carried: Partial<WalkCheckpoint>): WalkCheckpoint {
  const parent = checkpoint.parent!;
  const { matched } = checkpoint;
  return {
    ...firstCheckpoint(pager),
    ...carried,
    matched,
    pages: parent.firstPage,
    parent: { ...parent, pass: parent.pass + 1 },
  };
}

/** The parent's place once its list was read, with its counts added to the counts of earlier parents. */
function settled({ memory }: OpenWalk, { parent, duplicates }: WalkCheckpoint, outcome: WalkOutcome): ParentPlace {
  const before = parent!;
  const isFirstReason = before.reason === undefined && outcome.kind === 'unverified';
  const proof: Proof | undefined = outcome.kind === 'verified' && before.proof !== 'two-pass' ? outcome.proof : before.proof;
  return {
    ...before,
    received: before.received + memory.size,
    duplicates: before.duplicates + duplicates,
    ...(isFirstReason && { reason: outcome.reason, reasonDetail: outcome.detail }),
    ...(proof && { proof }),
  };
}
