import type { Endpoint } from '../catalogue/endpoint.js';
import type { Clock } from '../core/clock.js';
import { isMusterError, type MusterError } from '../core/errors.js';
import type { ReceivedPage } from '../pagers/envelope.js';
import type { KnownPages } from '../pagers/known-page.js';
import type { Advance, JsonObject, Pager } from '../pagers/pager.js';
import type { OpenWalk } from './open-walk.js';
import { type FetchPage, PageWindow } from './page-window.js';
import { digestToken } from './pass-memory.js';
import { SharedCommit } from './shared-commit.js';
import { checkpointAfter, type WalkCheckpoint } from './walk-checkpoint.js';
import type { WalkStore } from './walk-store.js';

/** What the requests of one pass have in common. */
export interface PassRequest {
  /** Record of the parent list that stands for `{id}` in the path. */
  readonly parent?: string;
  /** Read the records and leave the totals around them unread. */
  readonly ignoreTotals?: boolean;
  /** What need not be compared with the mirror; undefined once that cannot be told any more. */
  readonly known?: () => KnownPages | undefined;
}

/** What a walk asks of its store between the opening and the end. */
export type WalkRecord = Pick<WalkStore, 'commitPages' | 'beginPass' | 'noteOrder' | 'parentAfter' | 'finish'>;

export interface WalkDependencies {
  readonly store: WalkRecord;
  readonly fetchFor: (pass: PassRequest) => FetchPage;
  readonly clock: Clock;
  /** Asked before every commit: whether to stop behind it for now. */
  readonly shouldYield: () => boolean;
}

export type PassEnd =
  /** The list was read to its end. */
  | { readonly kind: 'end'; readonly checkpoint: WalkCheckpoint }
  | { readonly kind: 'yielded' }
  /** The page token expired or led in a circle: only the beginning of the list is left. */
  | { readonly kind: 'token-lost'; readonly error: MusterError }
  /** The list contradicts its totals, however often it is asked. */
  | { readonly kind: 'contradicted' }
  /** The list did not end within the requests that any list should take. */
  | { readonly kind: 'endless'; readonly checkpoint: WalkCheckpoint }
  /** The service knows no such parent any more. */
  | { readonly kind: 'parent-gone'; readonly checkpoint: WalkCheckpoint };

/** What services answer to a page token that they no longer know: no standard says which one it is. */
const TOKEN_REFUSED = new Set([400, 404, 410, 422]);
const GONE = new Set([404, 410]);
/** A page that cannot be used is asked for again: it may have been cut from a list that was changing just then. */
const REPEATS = 2;
const REPEAT_DELAY_MS = 300;

/** One pass over a list, from the checkpoint to its end. Pages are committed in order, several at once where they have come. */
export async function walkPass(
  walk: OpenWalk,
  endpoint: Endpoint,
  pager: Pager,
  from: WalkCheckpoint,
  deps: WalkDependencies,
  signal: AbortSignal,
): Promise<PassEnd> {
  if (from.ended) return { kind: 'end', checkpoint: from };
  const fetch = deps.fetchFor({
    ...(from.parent && { parent: from.parent.id }),
    ...(from.distrustsTotal && { ignoreTotals: true }),
    ...(walk.reference && { known: () => (walk.memory.isSteady ? walk.reference : undefined) }),
  });
  const window = new PageWindow(pager, fetch, signal);
  const commit = new SharedCommit(walk, deps);
  try {
    return await readPages(walk, endpoint, pager, from, window, commit, deps, signal);
  } finally {
    window.close();
    await commit.now();
  }
}

async function readPages(
  walk: OpenWalk,
  endpoint: Endpoint,
  pager: Pager,
  from: WalkCheckpoint,
  window: PageWindow,
  commit: SharedCommit,
  deps: WalkDependencies,
  signal: AbortSignal,
): Promise<PassEnd> {
  let checkpoint = from;
  let repeats = 0;
  for (;;) {
    let page: ReceivedPage;
    let advance: Advance<JsonObject>;
    try {
      const unread = await window.take(checkpoint.pager);
      page = await unread.read(walk.idField);
      if (!walk.memory.isOnTrail(page)) await leaveTrail(walk);
      // Only the service has its records, and now they are compared.
      if (page.content && !page.full && !walk.memory.agreesWith(page)) continue;
      advance = pager.next(checkpoint.pager, page, walk.memory);
    } catch (error) {
      if (isWorthRepeating(error) && repeats < REPEATS) {
        repeats += 1;
        await deps.clock.sleep(REPEAT_DELAY_MS * repeats, signal);
        continue;
      }
      const end = endBecauseOf(error, endpoint, checkpoint);
      if (end) return end;
      throw error;
    }
    repeats = 0;
    if (advance.kind === 'again') {
      checkpoint = furtherBack(checkpoint, advance.state);
      continue;
    }
    const { repeated, newFrom } = remember(walk, page, endpoint);
    // A record that came with two texts may have been written with the other one.
    if (page.full && !walk.memory.isSteady) page = page.full();
    const next = checkpointAfter(checkpoint, page, repeated, advance.kind === 'next' ? advance.state : undefined);
    const stop = advance.kind === 'done' || deps.shouldYield();
    const nextHasCome = !stop && window.hasCome(next.pager);
    // What is waited for is asked for at once; what need not be, while the database works.
    if (!stop && !nextHasCome) window.aim(next.pager);
    await commit.add({ page, number: checkpoint.pages, newFrom }, next, nextHasCome);
    if (advance.kind === 'done') return { kind: 'end', checkpoint: next };
    if (stop) return { kind: 'yielded' };
    checkpoint = next;
  }
}

function furtherBack(checkpoint: WalkCheckpoint, pager: JsonObject): WalkCheckpoint {
  return { ...checkpoint, pager };
}

/** From here on the pass is not what its reference was, page for page. */
export async function leaveTrail({ memory, reference }: OpenWalk): Promise<void> {
  await reference?.readHashes();
  memory.leaveTrail();
}

/**
 * Adds the page to the pass's memory. Returns from which position on all its records are new to the pass, and how many shared
 * their id with another one. In an offset list known records stand at the front of a page: they are its overlap, or were moved
 * there by others. In a list of a stable order one that stands behind a new record is a second record with that id.
 */
function remember({ memory }: OpenWalk, page: ReceivedPage, { pager, order }: Endpoint) {
  const { keys, total, nextToken } = page;
  if (total !== undefined) memory.expect(total);
  if (nextToken !== undefined) memory.addTokenDigest(digestToken(nextToken));
  let fresh = pager.style === 'continuation';
  const joined = memory.follow(page);
  if (joined !== undefined) return { repeated: fresh && order === 'stable' ? joined : 0, newFrom: joined };
  let repeated = 0;
  let newFrom = 0;
  for (let n = 0; n < keys.length; n += 1) {
    const isNew = memory.add(page, n) === 'new';
    if (!isNew) newFrom = n + 1;
    if (!isNew && ((fresh && order === 'stable') || keys.isRepeat(n))) repeated += 1;
    fresh ||= isNew;
  }
  return { repeated, newFrom };
}

function isWorthRepeating(error: unknown): boolean {
  return (
    isMusterError(error, 'contradicting_envelope') ||
    isMusterError(error, 'malformed_envelope') ||
    isMusterError(error, 'malformed_response')
  );
}

/** The end that an error puts to the pass without putting one to the walk. */
function endBecauseOf(error: unknown, endpoint: Endpoint, checkpoint: WalkCheckpoint): PassEnd | undefined {
  if (isMusterError(error, 'walk_limit_exceeded')) return { kind: 'endless', checkpoint };
  const refusal = isMusterError(error, 'service_refused') ? Number(error.details['status']) : undefined;
  if (endpoint.pager.style === 'continuation') {
    if (isMusterError(error, 'page_token_loop')) return { kind: 'token-lost', error };
    const isLost = checkpoint.pager['token'] !== null && refusal !== undefined && TOKEN_REFUSED.has(refusal);
    if (isLost) return { kind: 'token-lost', error: error as MusterError };
  } else if (isMusterError(error, 'contradicting_envelope') && !checkpoint.distrustsTotal) return { kind: 'contradicted' };
  const isGone = checkpoint.parent !== undefined && refusal !== undefined && GONE.has(refusal);
  return isGone ? { kind: 'parent-gone', checkpoint } : undefined;
}
