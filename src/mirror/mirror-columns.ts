/** Causes that set a column: a page inserts the row, a page rewrites it (it may come back), it is marked deleted, its stored data is redacted. */
type Cause = 'insert' | 'rewrite' | 'delete' | 'redact';

interface MirrorColumn extends Readonly<Partial<Record<Cause, string>>> {
  /** Whether typed views and raw exports show it. */
  readonly isShown: boolean;
}

/** The columns of every table of a resource besides its key (environment, company_id, id) and `data`. The schema has them as well. */
export const MIRROR_COLUMNS: Readonly<Record<string, MirrorColumn>> = {
  first_seen_at: { insert: 'now()', isShown: true },
  changed_at: { insert: 'now()', rewrite: 'now()', delete: 'now()', redact: 'now()', isShown: true },
  deleted_at: { rewrite: 'NULL', delete: 'now()', isShown: false },
};

const setBy = (cause: Cause): Record<string, string> =>
  Object.fromEntries(Object.entries(MIRROR_COLUMNS).flatMap(([name, { [cause]: value }]) => (value ? [[name, value]] : [])));

/** The columns that an INSERT names, and their values. */
export const INSERTED = { names: Object.keys(setBy('insert')).join(', '), values: Object.values(setBy('insert')).join(', ') };

/** The assignments of an UPDATE. */
export function assignments(cause: Exclude<Cause, 'insert'>): string {
  return Array.from(Object.entries(setBy(cause)), (pair) => pair.join(' = ')).join(', ');
}

export const SHOWN_COLUMNS: readonly string[] = Object.keys(MIRROR_COLUMNS).filter((name) => MIRROR_COLUMNS[name]!.isShown);
