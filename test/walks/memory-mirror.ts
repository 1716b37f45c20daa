import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Endpoint } from '../../src/catalogue/endpoint.js';
import { bytesOf } from '../../src/core/text-slice.js';
import { atOnce } from '../../src/core/turns.js';
import type { LedgerEntry } from '../../src/mirror/ledger-entry.js';
import { KeyHashes } from '../../src/pagers/key-hashes.js';
import { type Comparison, compareEverything } from '../../src/walks/comparison.js';
import type { OpenWalk } from '../../src/walks/open-walk.js';
import type { CountedPage, PagesToCommit } from '../../src/walks/pages-to-commit.js';
import { digestToken, PassMemory } from '../../src/walks/pass-memory.js';
import type { KeptResponse, ReceivedPage } from '../../src/walks/received-page.js';
import type { WalkCheckpoint } from '../../src/walks/walk-checkpoint.js';
import type { WalkOutcome } from '../../src/walks/walk-end.js';
import type { WalkRecord } from '../../src/walks/walk-pass.js';

/** A page as the ledger has it: its number names its snapshot and its keys. */
export interface LedgerPage {
  readonly ids: readonly string[];
  readonly keys: KeyHashes;
  readonly rowHashes: Uint32Array | undefined;
  readonly token: string | number | undefined;
  readonly answer: KeptResponse | undefined;
}

/** Makes the comparison of a pass. */
export type ComparisonOf = (pass: {
  readonly endpoint: Endpoint;
  /** Pages of the walk just before, if that may be gone by, and the digest of its keys. */
  readonly baseline: readonly LedgerPage[];
  readonly digest: string;
  /** Pages that the pass has committed already. */
  readonly committed: readonly LedgerPage[];
}) => Promise<Comparison>;

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
  readonly #comparisonOf: ComparisonOf;
  #ledger: LedgerPage[] = [];
  /** Pages of the walk just before, if the next one may go by it. */
  #known: readonly LedgerPage[] = [];
  #knownDigest = '';
  #lastOrder: readonly string[] | undefined;
  #saved: { pass: number; checkpoint: string } | undefined;
  #idField: string | undefined;
  #startedEmpty = true;

  constructor(comparisonOf: ComparisonOf = async () => compareEverything) {
    this.#comparisonOf = comparisonOf;
  }

  /** Nobody is forgotten here. */
  async leaveOut(_walk: OpenWalk, _endpoint: Endpoint, _parent: string | undefined, page: ReceivedPage): Promise<ReceivedPage> {
    return page;
  }

  /** The walk as a worker finds it that was not there before: from the checkpoint's text and the ledger. */
  async open(endpoint: Endpoint): Promise<OpenWalk> {
    const isFirstPass = (this.#saved?.pass ?? 1) === 1;
    const baseline = isFirstPass ? this.#known : [];
    const committed = this.#ledger;
    const comparison = await this.#comparisonOf({ endpoint, baseline, digest: this.#knownDigest, committed });
    const memory = this.#saved ? new PassMemory() : comparison.newMemory();
    if (!this.#saved) this.#startedEmpty = this.rows.size === 0;
    for (const { keys, token } of this.#ledger) {
      atOnce(memory.add(keys));
      if (token !== undefined) memory.addTokenDigest(digestToken(token));
    }
    return {
      id: 'walk',
      runId: 'run',
      list: { environment: 'test', companyId: 'company', resource: 'list' },
      epoch: 1n,
      grantNumber: 1,
      quietHours: null,
      wasRead: false,
      lastVerifiedAt: null,
      mayBeUnavailable: false,
      takesAnyWords: false,
      unstable: this.unstable,
      pass: this.#saved?.pass ?? 1,
      memory,
      comparison,
      etags: { isUsed: false, isFalse: false },
      pages: this.#ledger.length,
      fillsEmptyList: this.#startedEmpty && isFirstPass,
      ...(this.#idField !== undefined && { idField: this.#idField }),
      ...(this.#saved && { checkpoint: JSON.parse(this.#saved.checkpoint) as WalkCheckpoint }),
    };
  }

  async commitPages(walk: OpenWalk, { pages, checkpoint }: PagesToCommit): Promise<void> {
    await nextTurn();
    for (const page of pages) this.#commit(walk, page);
    this.#saved = { pass: walk.pass, checkpoint: JSON.stringify(checkpoint) };
  }

  #commit(walk: OpenWalk, { page, newFrom }: CountedPage): void {
    const { records, rejected, idField } = page;
    const isThere = ({ id, position }: { id: string; position: number }) => position >= newFrom && this.rows.has(id);
    if (walk.fillsEmptyList && records.some(isThere)) throw new Error('a record that is there was said to be new');
    for (const record of records) this.rows.set(record.id, bytesOf(record).toString());
    this.#ledger.push({ ...this.#entry(page.ledger), token: page.nextToken, answer: page.answer });
    this.spared += page.count - records.length - rejected.length;
    this.#idField ??= idField;
    if (this.#idField !== undefined) walk.idField = this.#idField;
  }

  #entry(ledger: LedgerEntry): Pick<LedgerPage, 'ids' | 'keys' | 'rowHashes'> {
    if (ledger.kind === 'same') return this.#known[Number(ledger.snapshotId)]!;
    const rowHashes = ledger.rowHashes?.slice();
    if (ledger.kind === 'same-keys') return { ...this.#known[Number(ledger.keysId)]!, rowHashes };
    return { ids: ledger.ids, keys: new KeyHashes(ledger.keys.slice()), rowHashes };
  }

  async beginPass(walk: OpenWalk, endpoint: Endpoint, pass: number, checkpoint: WalkCheckpoint): Promise<OpenWalk> {
    this.#ledger = [];
    this.#saved = { pass, checkpoint: JSON.stringify(checkpoint) };
    walk.comparison.close();
    const comparison = await this.#comparisonOf({ endpoint, baseline: [], digest: '', committed: [] });
    return { ...walk, pass, checkpoint, memory: comparison.newMemory(), fillsEmptyList: false, comparison };
  }

  async recordOrder(walk: OpenWalk): Promise<void> {
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
    this.#known = outcome.kind === 'verified' && walk.comparison.isReusable ? this.#ledger : [];
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

  /** Every id at its last place. */
  #order(): string[] {
    return [...new Set(this.received().toReversed())].toReversed();
  }
}
