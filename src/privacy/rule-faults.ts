/** A problem of the rule with this path. */
export interface RuleFault {
  readonly path: string;
  readonly problem: string;
}

/**
 * The problems of the paths of a catalogue entry's `privacy`, read from the raw input. `ids`: the members that may be the id; `next`: the entry's path of
 * the token of the next page.
 */
export function faultsOfRules(rules: unknown, ids: readonly string[], next: unknown): RuleFault[] {
  if (typeof rules !== 'object' || rules === null || Array.isArray(rules)) return [];
  const paths = Object.keys(rules);
  const token = /^last +(\S+)$/.exec(String(next))?.[1];
  return paths.flatMap((path) => {
    const problem = problemOf(path, ids, token, paths);
    return problem === undefined ? [] : [{ path, problem }];
  });
}

function problemOf(
  path: string,
  ids: readonly string[],
  token: string | undefined,
  paths: readonly string[],
): string | undefined {
  if (path.split('.').includes('')) return 'must be a dot path: the names of members, with one dot between two';
  // For a JavaScript object this is no ordinary member, neither here nor where rules are kept.
  if (path.split('.').includes('__proto__')) return 'must not hold the name __proto__';
  const id = ids.find((member) => overlaps(path, member));
  if (id !== undefined) return `must not name ${id}: a record is known by its id, which stays as it is`;
  if (token !== undefined && overlaps(path, token))
    return `must not name ${token}: fields.next reads the next page's token there`;
  const other = paths.find((each) => each !== path && path.startsWith(`${each}.`));
  return other === undefined ? undefined : `stands within ${other}, which has a rule already; keep one of the two`;
}

/** Whether two paths are the same, or one stands within the other. */
function overlaps(a: string, b: string): boolean {
  return a === b || a.startsWith(`${b}.`) || b.startsWith(`${a}.`);
}
