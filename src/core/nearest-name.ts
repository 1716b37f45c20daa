import { distance } from 'fastest-levenshtein';

/** The known name that `name` most likely means: at most a third may be mistyped, and letter case is ignored. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const far = (candidate: string) => distance(name.toLowerCase(), candidate.toLowerCase());
  const [nearest] = known.toSorted((a, b) => far(a) - far(b));
  return nearest === undefined || far(nearest) > Math.max(1, Math.floor(name.length / 3)) ? undefined : nearest;
}
