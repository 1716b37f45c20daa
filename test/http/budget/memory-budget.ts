import { type BudgetRow, LEASED_AHEAD_SECONDS } from '../../../src/db/tables/request-budgets.js';
import { SHARE_TIMEOUT_SECONDS, type Share } from '../../../src/db/tables/request-shares.js';
import type { BudgetStore } from '../../../src/http/budget/budget-store.js';

/** Times are whole microseconds, as PostgreSQL has them. */
interface Row extends Pick<BudgetRow, 'version' | 'rate' | 'fallback' | 'seeking' | 'progress' | 'announced' | 'atOnce'> {
  readonly nextSlotAt: number;
  readonly changedAt: number;
  readonly resumesAt: number;
}

const microseconds = (seconds: number) => Math.round(seconds * 1e6);
const HOUR = microseconds(3_600);

/**
 * The rows of one environment in muster.request_budgets and muster.request_shares, without a database: for simulations.
 * budget-store.test.ts holds that its statements do what those of db/tables do.
 */
export class MemoryBudget {
  readonly #clock: () => number;
  #row: Row | undefined;
  readonly #shares = new Map<string, Share & { readonly seenAt: number }>();
  #lock: Promise<void> = Promise.resolve();

  /** `clock`: the database's, in milliseconds since 1970. */
  constructor(clock: () => number) {
    this.#clock = clock;
  }

  /** The store of one worker. `trip`: how long a statement is on its way, or its answer is. */
  store(toDatabase: () => Promise<void> = async () => {}, back = toDatabase): BudgetStore {
    const statement =
      <Arguments extends unknown[], Result>(work: (...given: Arguments) => Result) =>
      async (...given: Arguments) => {
        await toDatabase();
        const result = work(...given);
        await back();
        return result;
      };
    const read = statement(() => this.#readShares());
    const report = statement((share: Share) => this.#report(share));
    return {
      add: statement(() => this.#add()),
      read: statement(() => this.#read()),
      lease: statement((request) => this.#lease(request)),
      change: statement((known) => this.#change(known)),
      pause: statement((seconds) => this.#pause(seconds)),
      announce: statement((limit) => this.#announce(limit)),
      rememberAtOnce: statement((atOnce) => this.#update({ atOnce })),
      report,
      divide: async (divide) => {
        await toDatabase();
        const before = this.#lock;
        let unlock = () => {};
        this.#lock = new Promise((resolve) => (unlock = resolve));
        await before;
        await back();
        await report(divide(await read()));
        await toDatabase();
        unlock();
        await back();
      },
      removeOldShares: statement(() => this.#removeOldShares()),
    };
  }

  /** What is known, as it stands. */
  get row(): Readonly<Row> | undefined {
    return this.#row;
  }

  get #now(): number {
    return Math.round(this.#clock() * 1_000);
  }

  #update(change: Partial<Row>): void {
    if (this.#row) this.#row = { ...this.#row, ...change };
  }

  #add(): void {
    const unknown = { rate: null, fallback: null, seeking: false, progress: 0, announced: null, atOnce: null };
    this.#row ??= { version: 0, ...unknown, nextSlotAt: this.#now, changedAt: this.#now, resumesAt: this.#now };
  }

  #read(): BudgetRow | undefined {
    if (!this.#row) return undefined;
    const { nextSlotAt, changedAt, resumesAt, ...known } = this.#row;
    const seconds = (duration: number) => Math.max(0, duration / 1e6);
    return {
      ...known,
      elapsed: seconds(this.#now - changedAt),
      paused: seconds(resumesAt - changedAt),
      pause: seconds(Math.min(resumesAt - this.#now, resumesAt - changedAt)),
      lead: seconds(nextSlotAt - this.#now),
    };
  }

  #lease({ version, slots, interval }: Parameters<BudgetStore['lease']>[0]) {
    const row = this.#row;
    if (row?.version !== version) return undefined;
    const now = this.#now;
    const furthest = now + microseconds(60 + 10 * slots * interval);
    const startsAt = Math.max(now, Math.min(row.nextSlotAt, Math.max(row.resumesAt, furthest)));
    const progress = row.progress + slots * interval;
    this.#update({ progress, nextSlotAt: startsAt + microseconds(slots * interval) });
    return { startsAt: startsAt / 1_000, now: now / 1_000, progress };
  }

  #change({ version, pause, rate, fallback, seeking, progress }: Parameters<BudgetStore['change']>[0]): boolean {
    if (this.#row?.version !== version) return false;
    const now = this.#now;
    const resumesAt = now + microseconds(pause);
    const nextSlotAt = Math.max(resumesAt, Math.min(this.#row.nextSlotAt, now + microseconds(LEASED_AHEAD_SECONDS)));
    this.#update({ version: version + 1, rate, fallback, seeking, progress, changedAt: now, resumesAt, nextSlotAt });
    return true;
  }

  #pause(seconds: number): void {
    const resumesAt = this.#now + microseconds(seconds);
    if (!this.#row || this.#row.resumesAt >= resumesAt) return;
    this.#update({ version: this.#row.version + 1, changedAt: this.#now, resumesAt, nextSlotAt: resumesAt });
  }

  #announce(announced: number): void {
    if (this.#row && this.#row.announced !== announced) this.#update({ version: this.#row.version + 1, announced });
  }

  #report(share: Share): void {
    this.#shares.set(share.worker, { ...share, seenAt: this.#now });
  }

  #readShares() {
    const now = this.#now;
    const shares = [...this.#shares.values()]
      .filter(({ seenAt }) => seenAt > now - microseconds(SHARE_TIMEOUT_SECONDS))
      .map(({ worker, wanted, held }) => ({ worker, wanted, held }))
      .toSorted((one, other) => (one.worker < other.worker ? -1 : 1));
    return { shares, now: shares.length === 0 ? 0 : now / 1e6 };
  }

  #removeOldShares(): void {
    for (const [worker, { seenAt }] of this.#shares) if (seenAt < this.#now - HOUR) this.#shares.delete(worker);
  }
}
