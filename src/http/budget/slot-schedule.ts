import type { Clock } from '../../core/clock.js';
import type { BudgetStore } from './budget-store.js';

interface SlotScheduleDependencies {
  readonly store: BudgetStore;
  readonly clock: Clock;
}

/** Seconds of slots in one lease: enough that a request costs no round trip, few enough that a worker without requests soon leaves the slots to others. */
const BLOCK_SECONDS = 0.15;
/** More slots are leased this long before the last one. */
const AHEAD_MS = 50;
/**
 * A slot missed by more than this is void. A schedule below its limit (BELOW_LIMIT) leaves 25 ms of a second free. A request that arrives later may
 * be one too many in its second, and a refusal costs more than a slot. The other 10 ms are for its way to the service.
 */
const LATE_MS = 15;
/**
 * The first requests of a process or after a pause are slow: connections are opened, code is compiled. The following ones are quicker and would arrive
 * too close to them, so this many seconds of slots are further apart.
 */
const WARM_UP_SECONDS = 1.2;
const WARM_UP_INTERVAL = 1.15;
/** A process that sent nothing for longer warms up again. */
const COLD_MS = 4_000;
/** Readings of the database's clock. The one with the shortest delay is nearest to the truth. */
const SAMPLES = 16;

/**
 * This process's slots of the environment's schedule, which all workers share. At each slot one request may be sent. Slots are evenly spaced
 * by the rate, so that all workers together send evenly, however many there are.
 */
export class SlotSchedule {
  readonly #deps: SlotScheduleDependencies;
  /** Times by `clock.monotonic`, in ascending order. */
  #slots: number[] = [];
  /** How far the database's clock is ahead of `clock.monotonic`, by its last answers. Each is too small by the delay of the answer. */
  readonly #ahead: number[] = [];
  /** Grows when all slots become void, including those being leased. */
  #epoch = 0;
  #leasing = false;
  /** Slots still to be leased with the wider interval. */
  #cold = 0;
  #leasedUntil = -Infinity;

  constructor(deps: SlotScheduleDependencies) {
    this.#deps = deps;
  }

  /** The next time at which a request may be sent. */
  get next(): number | undefined {
    return this.#slots[0];
  }

  clear(): void {
    this.#slots = [];
    this.#epoch += 1;
  }

  /** Uses a slot; false if none is due. */
  take(): boolean {
    const now = this.#deps.clock.monotonic();
    while (this.#slots.length > 0 && this.#slots[0]! < now - LATE_MS) this.#slots.shift();
    if (this.#slots.length === 0 || this.#slots[0]! > now) return false;
    this.#slots.shift();
    return true;
  }

  /** Whether the waiting requests need more slots now. */
  isShort(waiting: number): boolean {
    const last = this.#slots.at(-1);
    return (
      !this.#leasing && waiting > this.#slots.length && (last === undefined || last < this.#deps.clock.monotonic() + AHEAD_MS)
    );
  }

  /** Returns the progress of the schedule; undefined if `version` is outdated. Throws database errors. */
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
