import { setImmediate as nextTurn } from 'node:timers/promises';
import { bytesOf } from '../../src/core/text-slice.js';
import type { KeptAnswer } from '../../src/pagers/envelope.js';
import { KeyHashes, TextHashes } from '../../src/pagers/hashes.js';
import type { OpenWalk } from '../../src/walks/open-walk.js';
import { digestToken, ReceivedKeys } from '../../src/walks/pass-memory.js';
import { Reference } from '../../src/walks/reference.js';
import { trailOf } from '../../src/walks/trail.js';
import type { WalkCheckpoint } from '../../src/walks/walk-checkpoint.js';
import type { WalkOutcome } from '../../src/walks/walk-end.js';
import type { WalkRecord } from '../../src/walks/walk-pass.js';
import type { CountedPage, PagesToCommit } from '../../src/walks/walk-store.js';

interface LedgerPage {
  readonly ids: readonly string[];
  readonly keys: KeyHashes;
  readonly texts: TextHashes;
  readonly token: string | undefined;
  readonly answer: KeptAnswer | undefined;
}

/** A mirror in memory that does what the database's does, written down a second time, so that thousands of walks take seconds. */
export class MemoryMirror implements WalkRecord {
  /** Living rows: id -> text. */
  readonly rows = new Map<string, string>();
  /** Ids marked deleted at the end of the last walk. */
  deleted: string[] = [];
  outcome: WalkOutcome | undefined;
  unstable = false;
  /** Records that were not compared. */
  spared = 0;
  #ledger: LedgerPage[] = [];
  /** Pages of the walk just before, if that was verified and steady. */
  #known: readonly LedgerPage[] = [];
  #knownDigest = '';
  #lastOrder: readonly string[] | undefined;
  #saved: { pass: number; checkpoint: string } | undefined;
  #idField: string | undefined;
  #startedEmpty = true;

  /** The walk as a worker finds it that was not there before: from the checkpoint's text and the ledger. */
  open(): OpenWalk {
    const isFirstPass = (this.#saved?.pass ?? 1) === 1;
    const { reference, trail } = this.#reference();
    const memory = new ReceivedKeys(this.#saved ? undefined : trail);
    if (!this.#saved) this.#startedEmpty = this.rows.size === 0;
    for (const { keys, texts, token } of this.#ledger) {
      for (let n = 0; n < keys.length; n += 1) memory.add({ keys, texts }, n);
      if (token !== undefined) memory.addTokenDigest(digestToken(token));
    }
    return {
      id: 'walk',
      runId: 'run',
      list: { environment: 'test', companyId: 'company', resource: 'list' },
      epoch: 1n,
      unstable: this.unstable,
      pass: this.#saved?.pass ?? 1,
      memory,
      pages: this.#ledger.length,
      fillsEmptyList: this.#startedEmpty && isFirstPass,
      ...(isFirstPass && { reference }),
      ...(this.#idField !== undefined && { idField: this.#idField }),
      ...(this.#saved && { checkpoint: JSON.parse(this.#saved.checkpoint) as WalkCheckpoint }),
    };
  }

  async commitPages(walk: OpenWalk, { pages, checkpoint }: PagesToCommit, onSent = () => {}): Promise<void> {
    onSent();
    await nextTurn();
    for (const page of pages) this.#commit(walk, page);
    this.#saved = { pass: walk.pass, checkpoint: JSON.stringify(checkpoint) };
  }

  #commit(walk: OpenWalk, { page, newFrom }: CountedPage): void {
    const isThere = ({ id, position }: { id: string; position: number }) => position >= newFrom && this.rows.has(id);
    if (walk.fillsEmptyList && page.records.some(isThere)) throw new Error('a record that is there was said to be new');
    for (const record of page.records) this.rows.set(record.id, bytesOf(record).toString());
    const { nextToken, answer } = page;
    // The hashes of what is known may never have been read.
    const { ids, keys } = 'id' in page.ids ? this.#known[Number(page.ids.id)]! : { ids: page.ids, keys: page.keys };
    const texts = page.content
      ? this.#known[Number(page.content.id)]!.texts
      : new TextHashes(page.texts.length, page.texts.words.slice());
    this.#ledger.push({ ids, keys, texts, token: nextToken, answer });
    this.spared += page.keys.length - page.records.length - page.rejected.length;
    this.#idField ??= page.idField;
    if (this.#idField !== undefined) walk.idField = this.#idField;
  }

  async beginPass(walk: OpenWalk, pass: number, checkpoint: WalkCheckpoint): Promise<OpenWalk> {
    this.#ledger = [];
    this.#saved = { pass, checkpoint: JSON.stringify(checkpoint) };
    return { ...walk, pass, checkpoint, memory: new ReceivedKeys(), fillsEmptyList: false, reference: undefined };
  }

  async noteOrder(walk: OpenWalk): Promise<void> {
    const now = this.#order();
    const before = (this.#lastOrder ?? []).filter((id) => now.includes(id));
    const still = now.filter((id) => before.includes(id));
    if (before.every((id, index) => id === still[index])) return;
    this.unstable = true;
    walk.unstable = true;
  }

  async parentAfter(): Promise<undefined> {}

  async finish(walk: OpenWalk, outcome: WalkOutcome): Promise<void> {
    this.outcome = outcome;
    const received = new Set(this.received());
    if (walk.memory.size !== received.size) throw new Error(`${received.size} records were received, not ${walk.memory.size}`);
    this.deleted = [];
    this.#known = outcome.kind === 'verified' && walk.memory.isSteady ? this.#ledger : [];
    this.#knownDigest = walk.memory.digest;
    if (outcome.kind === 'verified') {
      this.deleted = [...this.rows.keys()].filter((id) => !received.has(id));
      for (const id of this.deleted) this.rows.delete(id);
      this.#lastOrder = this.#order();
    }
  }

  /** Forgets the walk that ended, or failed, so that the next one cannot go by what was before it; the rows stay. */
  nextWalk(): void {
    if (!this.outcome) this.#known = [];
    this.#ledger = [];
    this.#saved = undefined;
    this.outcome = undefined;
  }

  /** Ids of the ledger. */
  received(): string[] {
    return this.#ledger.flatMap(({ ids }) => ids);
  }

  #reference() {
    const pages = this.#known.map(({ keys, texts, answer }, n) => {
      const content = { id: BigInt(n), keys: new KeyHashes(keys.length), texts: new TextHashes(texts.length) };
      content.texts.arriveRuns(texts.runs.slice());
      const [firstKey, lastKey] = [Buffer.from(keys.words.slice(0, 2).buffer), Buffer.from(keys.words.slice(-2).buffer)];
      return { content, answer, firstKey, lastKey };
    });
    const reference = new Reference(pages, async () => {
      for (const [n, { keys, texts }] of this.#known.entries()) {
        pages[n]!.content.keys.arrive(keys.words.slice());
        pages[n]!.content.texts.arrive(texts.words.slice());
      }
    });
    return { reference, trail: trailOf(pages, this.#knownDigest) };
  }

  /** Every id at its last place. */
  #order(): string[] {
    return [...new Set(this.received().toReversed())].toReversed();
  }
}
