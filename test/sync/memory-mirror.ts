import { digestToken, ReceivedKeys } from '../../src/sync/pass-memory.js';
import type { WalkCheckpoint } from '../../src/sync/walk-checkpoint.js';
import type { WalkRecord } from '../../src/sync/walk-pass.js';
import type { OpenWalk, PageToCommit, WalkOutcome } from '../../src/sync/walk-store.js';

/** A mirror in memory that does what the database's does, written down a second time, so that thousands of walks take seconds. */
export class MemoryMirror implements WalkRecord {
  /** Living rows: id -> text. */
  readonly rows = new Map<string, string>();
  /** Ids marked deleted at the end of the last walk. */
  deleted: string[] = [];
  outcome: WalkOutcome | undefined;
  unstable = false;
  #ledger: { ids: readonly string[]; token: string | undefined }[] = [];
  #lastOrder: readonly string[] | undefined;
  #saved: { pass: number; checkpoint: string } | undefined;
  #idField: string | undefined;

  /** The walk as a worker finds it that was not there before: from the checkpoint's text and the ledger. */
  open(): OpenWalk {
    const memory = new ReceivedKeys();
    for (const { ids, token } of this.#ledger) {
      for (const id of ids) memory.addKey(id);
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
      ...(this.#idField !== undefined && { idField: this.#idField }),
      ...(this.#saved && { checkpoint: JSON.parse(this.#saved.checkpoint) as WalkCheckpoint }),
    };
  }

  async commitPage(walk: OpenWalk, { page, checkpoint }: PageToCommit): Promise<void> {
    for (const { id, text } of page.records) this.rows.set(id, text);
    this.#ledger.push({ ids: page.keys, token: page.nextToken });
    this.#saved = { pass: walk.pass, checkpoint: JSON.stringify(checkpoint) };
    this.#idField ??= page.idField;
    if (this.#idField !== undefined) walk.idField = this.#idField;
  }

  async beginPass(walk: OpenWalk, pass: number, checkpoint: WalkCheckpoint): Promise<OpenWalk> {
    this.#ledger = [];
    this.#saved = { pass, checkpoint: JSON.stringify(checkpoint) };
    return { ...walk, pass, checkpoint, memory: new ReceivedKeys() };
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

  async finish(_walk: OpenWalk, outcome: WalkOutcome): Promise<void> {
    this.outcome = outcome;
    this.deleted = [];
    if (outcome.kind === 'verified') {
      const received = new Set(this.received());
      this.deleted = [...this.rows.keys()].filter((id) => !received.has(id));
      for (const id of this.deleted) this.rows.delete(id);
      this.#lastOrder = this.#order();
    }
  }

  /** Forgets the walk that ended; the rows stay. */
  nextWalk(): void {
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
