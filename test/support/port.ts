/** A port that is most likely free: below those that systems give to connections. */
export function anyPort(): number {
  return 10_000 + Math.floor(Math.random() * 22_000);
}
