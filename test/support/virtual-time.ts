import type { Clock } from '../../src/core/clock.js';

interface Event {
  /** Milliseconds. */
  readonly at: number;
  /** Events of one moment happen in the order in which they were due, and then in that in which they were planned. */
  readonly due: number;
  readonly number: number;
  readonly work: () => void;
}

/**
 * Time that passes only while `run` is awaited, from event to event, each after everything that waited for the one before has come to rest.
 * What is simulated may wait for promises and for this time, and for nothing else: no socket, file or timer.
 */
export class VirtualTime {
  #now = 0;
  #planned = 0;
  /** A binary heap: no event is before its parent. */
  readonly #events: Event[] = [];

  /** Milliseconds. */
  get now(): number {
    return this.#now;
  }

  /** `due`: when the event would have happened, had nothing held it up. */
  plan(at: number, work: () => void, due = at): void {
    const events = this.#events;
    const event = { at, due, number: (this.#planned += 1), work };
    let place = events.push(event) - 1;
    for (let parent = (place - 1) >> 1; place > 0 && isBefore(event, events[parent]!); parent = (place - 1) >> 1) {
      events[place] = events[parent]!;
      place = parent;
    }
    events[place] = event;
  }

  reach(at: number, due = at): Promise<void> {
    return new Promise((resolve) => this.plan(at, resolve, due));
  }

  /** Lets time pass until the work is done; an error where nothing is left that could do it. */
  async complete<T>(work: Promise<T>): Promise<T> {
    const state = { isDone: false };
    const done = work.finally(() => (state.isDone = true));
    done.catch(() => {});
    await this.run(0);
    while (!state.isDone) {
      if (this.#events.length === 0) throw new Error('Nothing is planned, and the work is not done');
      await this.run(this.#events[0]!.at - this.#now);
    }
    return done;
  }

  /** Lets so many milliseconds pass. Rejects with what an event throws. */
  async run(ms: number): Promise<void> {
    const end = this.#now + ms;
    await new Promise<void>((resolve, reject) => {
      // A tick that is asked for by a microtask comes once no microtask is left.
      const settle = () => queueMicrotask(() => process.nextTick(step));
      const step = () => {
        if (this.#events.length === 0 || this.#events[0]!.at > end) return resolve();
        const { at, work } = this.#takeFirst();
        this.#now = Math.max(this.#now, at);
        try {
          work();
        } catch (error) {
          return reject(error);
        }
        settle();
      };
      // The process has its turn, too: what ends tests that hang, and what tells of them.
      setImmediate(step);
    });
    this.#now = end;
  }

  #takeFirst(): Event {
    const events = this.#events;
    const first = events[0]!;
    const last = events.pop()!;
    if (events.length === 0) return first;
    let place = 0;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= events.length) break;
      if (child + 1 < events.length && isBefore(events[child + 1]!, events[child]!)) child += 1;
      if (!isBefore(events[child]!, last)) break;
      events[place] = events[child]!;
      place = child;
    }
    events[place] = last;
    return first;
  }
}

function isBefore(one: Event, other: Event): boolean {
  if (one.at !== other.at) return one.at < other.at;
  return one.due !== other.due ? one.due < other.due : one.number < other.number;
}

interface Sleep {
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

/** The clock of a process in virtual time. */
export class VirtualClock implements Clock {
  readonly #time: VirtualTime;
  readonly #awake: (at: number) => number;
  /** One listener a signal, however many sleep by it. */
  readonly #sleeping = new WeakMap<AbortSignal, Set<Sleep>>();

  /** `awake`: when the process does what is due at `at`, for one that stands still or is late; milliseconds of `time`. */
  constructor(time: VirtualTime, awake: (at: number) => number = (at) => at) {
    this.#time = time;
    this.#awake = awake;
  }

  now(): number {
    return Date.UTC(2026, 0, 15) + this.#time.now;
  }

  monotonic(): number {
    return this.#time.now;
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    const due = this.#time.now + ms;
    const at = this.#awake(due);
    if (!signal) return this.#time.reach(at, due);
    const sleeping = this.#sleepingBy(signal);
    return new Promise((resolve, reject) => {
      const sleep = { resolve, reject };
      sleeping.add(sleep);
      this.#time.plan(at, () => (sleeping.delete(sleep), resolve()), due);
    });
  }

  #sleepingBy(signal: AbortSignal): Set<Sleep> {
    let sleeping = this.#sleeping.get(signal);
    if (!sleeping) {
      const all = new Set<Sleep>();
      signal.addEventListener('abort', () => all.forEach(({ reject }) => reject(signal.reason)), { once: true });
      this.#sleeping.set(signal, (sleeping = all));
    }
    return sleeping;
  }
}
