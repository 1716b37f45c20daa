import type { Clock } from '../core/clock.js';
import { freeBuffers } from '../core/free-buffers.js';
import type { TextSlice } from '../core/text-slice.js';
import type { ReceivedPage } from '../pagers/envelope.js';
import type { OpenWalk } from './open-walk.js';
import type { WalkCheckpoint } from './walk-checkpoint.js';
import type { CountedPage, PagesToCommit, WalkStore } from './walk-store.js';

/** Pages and records that share a commit, and how long the first waits for it: what a crash makes the next worker ask for again. */
const PAGES_AT_ONCE = 256;
const RECORDS_AT_ONCE = 1_000;
/** A worker holds such a commit several times, and so does PostgreSQL. */
const BYTES_AT_ONCE = 16 * 1024 * 1024;
const WAIT_MS = 200;

export interface SharedCommitDependencies {
  readonly store: Pick<WalkStore, 'commitPages'>;
  readonly clock: Pick<Clock, 'monotonic'>;
}

/**
 * Pages on their way into the database. One that brings little beside what an earlier walk has proved waits for the next ones: a
 * commit each would take longer than receiving them. One that goes by no other waits only for what has come already. While the
 * database works on a commit, the pages of the next one are received and read.
 */
export class SharedCommit {
  readonly #walk: OpenWalk;
  readonly #deps: SharedCommitDependencies;
  #pages: CountedPage[] = [];
  #records = 0;
  #bytes = 0;
  #checkpoint: WalkCheckpoint | undefined;
  #since = 0;
  #underWay: Promise<void> = Promise.resolve();

  constructor(walk: OpenWalk, deps: SharedCommitDependencies) {
    this.#walk = walk;
    this.#deps = deps;
  }

  /**
   * Takes a page with the checkpoint behind it, and whether the next one has come. Commits when enough wait: then returns once
   * the database works on it.
   */
  async add({ page, number, newFrom }: CountedPage, checkpoint: WalkCheckpoint, nextHasCome: boolean): Promise<void> {
    const now = this.#deps.clock.monotonic();
    if (this.#pages.length === 0) this.#since = now;
    const waiting = withoutResponse(page);
    this.#pages.push({ page: waiting, number, newFrom });
    this.#records += page.records.length + page.rejected.length;
    this.#bytes += waiting.response?.length ?? sizeOf(page.records) + sizeOf(page.rejected);
    this.#checkpoint = checkpoint;
    const isEnough =
      this.#pages.length >= PAGES_AT_ONCE ||
      this.#records >= RECORDS_AT_ONCE ||
      this.#bytes >= BYTES_AT_ONCE ||
      now - this.#since >= WAIT_MS;
    // A commit fixes which member is the id; until then, pages may have been read by different ones.
    const mayWait = this.#walk.idField !== undefined && ('id' in page.ids || nextHasCome);
    if (isEnough || !mayWait) await this.#send();
  }

  /** Commits what waits, to the end. */
  async now(): Promise<void> {
    await this.#send();
    await this.#underWay;
  }

  async #send(): Promise<void> {
    await this.#underWay;
    const [pages, checkpoint] = [this.#pages, this.#checkpoint];
    if (!checkpoint || pages.length === 0) return;
    this.#pages = [];
    this.#records = 0;
    this.#bytes = 0;
    const sent = new Promise<void>((onSent) => {
      this.#underWay = this.#commit({ pages, checkpoint }, onSent);
    });
    // The first page fixes which member is the id: the next ones are read by it.
    await (this.#walk.idField === undefined ? this.#underWay : Promise.race([sent, this.#underWay]));
    // Its failure is seen by the next commit, or at the end.
    this.#underWay.catch(() => {});
  }

  async #commit(commit: PagesToCommit, onSent: () => void): Promise<void> {
    await this.#deps.store.commitPages(this.#walk, commit, onSent);
    const responses: Buffer[] = [];
    for (const { page } of commit.pages) if (page.response) responses.push(page.response);
    freeBuffers(responses);
  }
}

/** The page without its response, which is given back, unless records that must be written stand in it. */
function withoutResponse(page: ReceivedPage): ReceivedPage {
  const { response } = page;
  const standsThere = ({ source }: TextSlice) => source.buffer === response?.buffer;
  const isNeeded = page.records.some(standsThere) || page.rejected.some(standsThere);
  if (response && !isNeeded) freeBuffers([response]);
  return { ...page, full: undefined, response: isNeeded ? response : undefined };
}

function sizeOf(texts: readonly TextSlice[]): number {
  return texts.reduce((bytes, { start, end }) => bytes + end - start, 0);
}
