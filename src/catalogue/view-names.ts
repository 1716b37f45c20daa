/** Tables and views of the schemas mirror and warehouse, and functions of warehouse, that belong to no list. */
const OWN_NAMES = new Set([
  'companies',
  'changes',
  'columns',
  'runs',
  'walks',
  'lists',
  'barriers',
  'feed',
  'as_of_limits',
  'require_kept',
  'require_kept_seq',
  'refuse_past',
]);

/** Views and functions of a list `x`: `x_history` and so on. */
const SUFFIXES = ['', '_history', '_changes', '_as_of', '_as_of_seq'];
/** Views of the arrays of a list `x`: `x__jobs` and so on, whatever members its records get. */
const ARRAY = '__';

/** Whether the name belongs to no list. */
export function isOwnName(resource: string): boolean {
  return OWN_NAMES.has(resource);
}

/** The list of `resources` that has, or may get, a view or function of a name that `resource` would have as well, and that name. */
export function listWithSameNames(resource: string, resources: Iterable<string>): { list: string; name: string } | undefined {
  for (const list of resources) {
    if (list === resource || !resource.startsWith(list)) continue;
    const endings = [...SUFFIXES, ARRAY].map((suffix) => resource.slice(list.length) + suffix);
    const ending = endings.find((each) => SUFFIXES.includes(each) || each.startsWith(ARRAY));
    if (ending !== undefined) return { list, name: list + ending };
  }
  return undefined;
}
