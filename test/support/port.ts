const FIRST = 10_000;
/** For each of vitest's workers, which test files side by side. */
const PORTS_A_WORKER = 5_500;
const first = FIRST + (Number(process.env.VITEST_POOL_ID ?? 0) % 4) * PORTS_A_WORKER;
let next = Math.floor(Math.random() * PORTS_A_WORKER);

/** A port that is most likely free: below those that systems give to connections, of no other worker of vitest, and never the same one twice. */
export function anyPort(): number {
  next = (next + 1) % PORTS_A_WORKER;
  return first + next;
}
