import { isObject, type Members } from '../core/json.js';

/** A problem of the reference with this path. */
export interface ReferenceFault {
  readonly path: string;
  readonly problem: string;
}

/** The problems of an entry's `references`, read from the raw input. `resources`: the lists of the catalogue. */
export function faultsOfReferences({ references, privacy }: Members, resources: readonly string[]): ReferenceFault[] {
  if (!isObject(references)) return [];
  const rules = isObject(privacy) ? Object.keys(privacy) : [];
  return Object.entries(references).flatMap(([path, referred]) => {
    const problem = problemOf(path, referred, rules, resources);
    return problem === undefined ? [] : [{ path, problem }];
  });
}

function problemOf(path: string, referred: unknown, rules: readonly string[], resources: readonly string[]): string | undefined {
  const names = path.split('.');
  if (names.includes('')) return 'must be a dot path: the names of members, with one dot between two';
  if (names.includes('__proto__')) return 'must not hold the name __proto__';
  const rule = rules.find((each) => each === path || path.startsWith(`${each}.`) || each.startsWith(`${path}.`));
  if (rule !== undefined) return `must not name what the privacy rule of ${rule} changes: it would match no id`;
  // Another value than a text is a fault of the schema already.
  if (typeof referred !== 'string' || resources.includes(referred)) return undefined;
  return `names no list of this catalogue: ${referred}`;
}
