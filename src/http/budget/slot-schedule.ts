import type { Clock } from '../../core/clock.js';
import type { BudgetStore } from './budget-store.js';

interface SlotScheduleDependencies {
  readonly store: BudgetStore;
  readonly clock: Clock;
}

/** What one lease covers: long enough that a request costs no round trip, short enough that others soon see that a worker has no more to ask. */
const BLOCK_SECONDS = 0.15;
/** More slots are leased so long before the last one. */
const AHEAD_MS = 50;
/**
 * A slot that was missed by more is void. A schedule below its limit (BELOW_LIMIT) leaves 25 ms free in a second: a request that comes later than that may
 * be one too many in its second, and a refusal costs more than a slot. The rest of the 25 is for its way to the service.
 */
const LATE_MS = 15;
/**
 * The first requests of a process, and those behind a pause, take their time: connections are made, code is compiled. What comes behind them is quicker,
 * and would be too close; so this many seconds of slots are further apart.
 */
const WARM_UP_SECONDS = 1.2;
const WARM_UP_INTERVAL = 1.15;
/** What rests for longer has to warm up again. */
const COLD_MS = 4_000;
/** So many answers of the database say what time it has: the one that took least is nearest to the truth. */
const SAMPLES = 16;

/**
 * This process's slots of the environment's one schedule: moments at which one request may leave, as far apart as the rate has it, whoever
 * has the next one. So all workers together send evenly, however many there are.
 */
export class SlotSchedule {
  readonly #deps: SlotScheduleDependencies;
  /** Moments by `clock.monotonic`, in their order. */
  #slots: number[] = [];
  /** How far the database's clock is ahead of `clock.monotonic`, as its last answers had it: too little by the time that they took. */
  readonly #ahead: number[] = [];
  /** Grows when the slots are void, those that are being leased included. */
  #epoch = 0;
  #leasing = false;
  /** Slots that are still to be leased further apart. */
  #cold = 0;
  #leasedUntil = -Infinity;

  constructor(deps: SlotScheduleDependencies) {
    this.#deps = deps;
  }

  /** The next moment at which a request may leave. */
  get next(): number | undefined {
    return this.#slots[0];
  }

  clear(): void {
    this.#slots = [];
    this.#epoch += 1;
  }

  /** Uses up a slot; false where none is due. */
  take(): boolean {
    const now = this.#deps.clock.monotonic();
    while (this.#slots.length > 0 && this.#slots[0]! < now - LATE_MS) this.#slots.shift();
    if (this.#slots.length === 0 || this.#slots[0]! > now) return false;
    this.#slots.shift();
    return true;
  }

  /** Whether so many requests that wait need more slots by now. */
  isShort(waiting: number): boolean {
    const last = this.#slots.at(-1);
    return (
      !this.#leasing && waiting > this.#slots.length && (last === undefined || last < this.#deps.clock.monotonic() + AHEAD_MS)
    );
  }

  /** Returns how far the schedule has come; undefined where something else is known by now than `version`. Throws what the database throws. */
  async lease(version: number, rate: number, waiting: number): Promise<number | undefined> {
    const { store, clock } = this.#deps;
    const slots = Math.max(1, Math.min(waiting - this.#slots.length, Math.ceil(rate * BLOCK_SECONDS)));
    if (clock.monotonic() - this.#leasedUntil > COLD_MS) this.#cold = WARM_UP_SECONDS * rate;
    const interval = (this.#cold > 0 ? WARM_UP_INTERVAL : 1) / rate;
    const epoch = this.#epoch;
    this.#leasing = true;
    try {
      const lease = await store.lease({ version, slots, interval });
      if (!lease) return undefined;
      this.#ahead.push(lease.now - clock.monotonic());
      if (this.#ahead.length > SAMPLES) this.#ahead.shift();
      if (epoch !== this.#epoch) return lease.progress;
      const startsAt = lease.startsAt - Math.max(...this.#ahead);
      for (let slot = 0; slot < slots; slot += 1) this.#slots.push(startsAt + slot * interval * 1_000);
      this.#leasedUntil = startsAt + slots * interval * 1_000;
      this.#cold -= slots;
      return lease.progress;
    } finally {
      this.#leasing = false;
    }
  }
}
