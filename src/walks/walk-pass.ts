import type { Endpoint } from '../catalogue/endpoint.js';
import type { Clock } from '../core/clock.js';
import { isMusterError, type MusterError } from '../core/errors.js';
import { inTurns } from '../core/turns.js';
import { MemoryShort, type ResponseMemory } from '../http/response-memory.js';
import { ServiceError, sentenceOf } from '../http/service-error.js';
import type { Advance, ErrorMeaning, JsonObject, Pager } from '../pagers/pager.js';
import { compareEverything } from './comparison.js';
import type { OpenWalk } from './open-walk.js';
import type { PageSource, PassRequest } from './page-source.js';
import { PageWindow, type TakenPage } from './page-window.js';
import { digestToken, type PassMemory } from './pass-memory.js';
import type { ReceivedPage } from './received-page.js';
import { SharedCommit } from './shared-commit.js';
import { checkpointAfter, checkpointAtEnd, type WalkCheckpoint } from './walk-checkpoint.js';
import type { WalkStore } from './walk-store.js';

/** The part of the store that a walk uses between its opening and its end. */
export type WalkRecord = Pick<WalkStore, 'leaveOut' | 'commitPages' | 'beginPass' | 'recordOrder' | 'parentAfter' | 'finish'>;

export interface WalkDependencies {
  readonly store: WalkRecord;
  readonly sourceOf: (pass: PassRequest) => PageSource;
  readonly answers: ResponseMemory;
  readonly clock: Clock;
  /** Asked before every commit: whether to stop after it for now. */
  readonly shouldYield: () => boolean;
}

export type PassEnd =
  /** The list was read to its end. */
  | { readonly kind: 'end'; readonly checkpoint: WalkCheckpoint }
  | { readonly kind: 'yielded' }
  /** The token or link of the next page expired or led in a circle: only the beginning of the list is left. */
  | { readonly kind: 'token-lost'; readonly error: MusterError }
  /** The list contradicts its totals, however often it is asked. */
  | { readonly kind: 'contradicted' }
  /** A page came with an ETag that another text had, and ETags stood for pages of this pass. */
  | { readonly kind: 'false-etags' }
  /** The list did not end within the requests that any list should take. */
  | { readonly kind: 'endless'; readonly checkpoint: WalkCheckpoint }
  /** The service knows no such parent any more, or the parent has no such list. */
  | { readonly kind: 'parent-gone'; readonly checkpoint: WalkCheckpoint; readonly serviceSays: string | undefined }
  /** The company does not have the list, as the service says. */
  | { readonly kind: 'unavailable'; readonly serviceSays: string | undefined };

/** How a walk of a list came to rest: `unavailable` where the company does not have the list, as the service says. */
export type WalkOver = 'finished' | 'yielded' | { readonly kind: 'unavailable'; readonly serviceSays: string | undefined };

const GONE = new Set([404, 410]);
/** Statuses that services answer for a list that a company, or a parent, does not have: by its plan, its modules or its rights. */
const LACKING = new Set([402, 403, 404]);
/** A page that cannot be used is asked for again: it may have been cut from a list that was changing just then. */
const UNUSABLE = new Set<string>(['contradicting_envelope', 'malformed_envelope', 'malformed_response', 'success_denied']);
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
  const source = deps.sourceOf({
    pager,
    ...(from.parent && { parent: from.parent.id }),
    ignoreTotals: from.distrustsTotal === true,
    comparison: () => walk.comparison,
  });
  const window = new PageWindow(pager, source, deps.answers, signal, walk.span);
  const commit = new SharedCommit(walk, deps);
  const pass = { walk, endpoint, pager, from, source, window, commit, deps, signal };
  try {
    return await readPages(pass);
  } finally {
    window.close();
    await commit.now().finally(() => commit.close());
  }
}

interface Pass {
  readonly walk: OpenWalk;
  readonly endpoint: Endpoint;
  readonly pager: Pager;
  readonly from: WalkCheckpoint;
  readonly source: PageSource;
  readonly window: PageWindow;
  readonly commit: SharedCommit;
  readonly deps: WalkDependencies;
  readonly signal: AbortSignal;
}

async function readPages({ walk, endpoint, pager, from, source, window, commit, deps, signal }: Pass): Promise<PassEnd> {
  const { memory } = walk;
  let checkpoint = from;
  let failures = 0;
  for (;;) {
    let taken: TakenPage | undefined;
    let page: ReceivedPage;
    let repeats: readonly number[];
    let advance: Advance<JsonObject>;
    try {
      window.aim(checkpoint.pager);
      await commit.makeRoom();
      taken = await window.take(checkpoint.pager, () => commit.makeRoom());
      page = await deps.store.leaveOut(walk, endpoint, from.parent?.id, await source.read(taken.fetched, walk.idField));
      if (page.kind === 'not-modified') walk.etags.isUsed = true;
      if (page.hasFalseEtag) walk.etags.isFalse = true;
      if (walk.etags.isFalse && walk.etags.isUsed) {
        discard(taken);
        return { kind: 'false-etags' };
      }
      repeats = await inTurns(memory.repeats(page.keys));
      if (!walk.comparison.agrees(page, repeats)) {
        discard(taken);
        compareFromHere(walk, window);
        continue;
      }
      const received = {
        repeats: repeats.length,
        isFirstPage: repeats.length === page.count && memory.isFirstPage(page.keys),
        endsAsBefore: memory.endsAsBefore(page.keys),
        hasToken: (token: string | number) => memory.hasToken(token),
      };
      advance = pager.next(checkpoint.pager, page, received);
    } catch (error) {
      if (!(error instanceof MemoryShort)) taken?.span?.fail(error);
      taken?.memory.free();
      if (error instanceof MemoryShort) {
        window.takeAgain(error);
        continue;
      }
      if (isUnusable(error) && failures < REPEATS) {
        failures += 1;
        await deps.clock.sleep(REPEAT_DELAY_MS * failures, signal);
        continue;
      }
      const meaning = isMusterError(error) ? pager.meaningOf(error, checkpoint.pager) : undefined;
      if (meaning?.kind === 'again') {
        checkpoint = withState(checkpoint, meaning.state);
        continue;
      }
      const end = endBecauseOf(error, meaning, pager, checkpoint, walk, endpoint);
      if (end) return end;
      throw error;
    }
    failures = 0;
    if (advance.kind === 'again') {
      discard(taken);
      checkpoint = withState(checkpoint, advance.state);
      continue;
    }
    const { duplicates, newFrom } = await inTurns(remember(memory, page, repeats, endpoint, pager));
    walk.comparison.took(page);
    const next = checkpointAfter(checkpoint, page, duplicates, pager, advance);
    const stop = advance.kind === 'done' || deps.shouldYield();
    const nextHasCome = !stop && window.hasCome(next.pager);
    // A page that has not been asked for yet is asked for at once; otherwise the window is aimed while the database works.
    if (!stop && !nextHasCome) window.aim(next.pager);
    const counted = { page, number: checkpoint.pages, newFrom, span: taken.span };
    await commit.add(counted, taken.memory, next, nextHasCome);
    if (advance.kind === 'done') {
      walk.overruled ??= advance.overruled;
      return { kind: 'end', checkpoint: next };
    }
    if (stop) return { kind: 'yielded' };
    checkpoint = next;
  }
}

/** The page is asked for again, and this response of it is not committed. */
function discard({ memory, span }: TakenPage): void {
  memory.free();
  span?.end({ 'muster.page.discarded': true });
}

/** The pass has received one record with two texts, or may have: no page is left uncompared any more, the present one included. */
function compareFromHere(walk: OpenWalk, window: PageWindow): void {
  // Not closed: the pass's memory may still read its pages.
  walk.comparison = compareEverything;
  // Pages under way were asked for by their ETags.
  window.drop();
}

/** The checkpoint from which the page is asked for with another state. */
function withState(checkpoint: WalkCheckpoint, pager: JsonObject): WalkCheckpoint {
  return { ...checkpoint, pager };
}

/**
 * Adds the page to the pass's memory, in portions. Returns `newFrom`, the position from where all its records are new to the pass, and how many have the id of
 * another record. Where pages overlap, known records are at the front of a page: they are its overlap, or others moved them there.
 * In a list of a stable order, a known record that follows a new one is a second record with that id.
 */
function* remember(memory: PassMemory, page: ReceivedPage, repeats: readonly number[], { order }: Endpoint, { overlaps }: Pager) {
  const { keys, total, nextToken } = page;
  if (total !== undefined) memory.expect(total);
  if (nextToken !== undefined) memory.addTokenDigest(digestToken(nextToken));
  const cameBefore = new Set(repeats);
  const known = yield* memory.add(keys);
  const firstNew = overlaps ? known.findIndex((n, place) => n !== place) : 0;
  const overlap = firstNew === -1 ? known.length : firstNew;
  // A key that comes twice on one page belongs to two records, whatever the order of the list.
  const duplicates = known.filter((n) => !cameBefore.has(n) || (order === 'stable' && n >= overlap)).length;
  return { duplicates, newFrom: (known.at(-1) ?? -1) + 1 };
}

/** Whether the page was read and cannot be used. Responses that are not of the API have been asked for again already, with more patience. */
function isUnusable(error: unknown): boolean {
  return isMusterError(error) && UNUSABLE.has(error.code) && !(error instanceof ServiceError && error.retryable);
}

/** The end that an error puts to the pass without putting one to the walk. */
function endBecauseOf(
  error: unknown,
  meaning: ErrorMeaning<JsonObject> | undefined,
  pager: Pager,
  checkpoint: WalkCheckpoint,
  { mayBeUnavailable, takesAnyWords, pages, pass }: OpenWalk,
  { optional }: Endpoint,
): PassEnd | undefined {
  if (!isMusterError(error)) return undefined;
  if (error.code === 'walk_limit_exceeded') return { kind: 'endless', checkpoint };
  if (meaning?.kind === 'token-lost') return { kind: 'token-lost', error };
  if (meaning?.kind === 'ended') return { kind: 'end', checkpoint: checkpointAtEnd(checkpoint, pager, meaning.doubted) };
  if (meaning?.kind === 'contradicted' && !checkpoint.distrustsTotal) return { kind: 'contradicted' };
  const { code, details } = error;
  if (code !== 'service_refused') return undefined;
  if (details['own_words'] !== true && !(mayBeUnavailable && takesAnyWords)) return undefined;
  const status = Number(details['status']);
  const isLacking = LACKING.has(status);
  const serviceSays = sentenceOf(error);
  // A parent that is passed over costs the proof, and no row: so whether the list was read before does not matter.
  if (checkpoint.parent !== undefined)
    return GONE.has(status) || (optional && isLacking) ? { kind: 'parent-gone', checkpoint, serviceSays } : undefined;
  // A walk that goes on from another one has pages of that.
  const hasPages = pages > 0 || checkpoint.pages > 0 || pass > 1;
  return isLacking && mayBeUnavailable && !hasPages ? { kind: 'unavailable', serviceSays } : undefined;
}
