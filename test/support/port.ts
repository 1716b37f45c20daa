const FIRST = 10_000;
/** Ranges of ports: one for each of vitest's workers, whose files run side by side. No configuration has more workers (test/project/ports.test.ts). */
export const PORT_RANGES = 8;
const PORTS_A_WORKER = 2_750;
const first = FIRST + (Number(process.env.VITEST_POOL_ID ?? 0) % PORT_RANGES) * PORTS_A_WORKER;
let next = Math.floor(Math.random() * PORTS_A_WORKER);

/** A port that is most likely free: below those that systems give to connections, of no other worker of vitest, and never the same one twice. */
export function anyPort(): number {
  next = (next + 1) % PORTS_A_WORKER;
  return first + next;
}
