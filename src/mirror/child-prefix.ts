/** What the ids of a parent's children begin with: the parent's id, encoded as in a path, so that no two pairs of ids give the same one. */
export function childPrefix(parent: string): string {
  return `${encodeURIComponent(parent)}/`;
}
