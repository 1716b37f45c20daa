/** A whole number from 0 to just below the one given. */
export type Random = (below: number) => number;

/** One of the names, each as often as its weight. */
export function draw<Name extends string>(random: Random, weights: Readonly<Partial<Record<Name, number>>>): Name {
  const names = (Object.entries(weights) as [Name, number][]).flatMap(([name, weight]) => Array<Name>(weight).fill(name));
  return names[random(names.length)]!;
}
