/** How many portions such work is done in. */
export function portionsIn(work: Generator<unknown, unknown>): number {
  let portions = 1;
  while (!work.next().done) portions += 1;
  return portions;
}

/** How many turns others have before the work is done. */
export async function turnsDuring(work: Promise<unknown>): Promise<number> {
  let turns = 0;
  let isDone = false;
  const take = () => {
    if (isDone) return;
    turns += 1;
    setImmediate(take);
  };
  setImmediate(take);
  await work.finally(() => {
    isDone = true;
  });
  return turns;
}
