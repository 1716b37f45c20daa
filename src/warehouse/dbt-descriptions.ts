/** The key of a column, as the log knows it. */
interface DescribedKey {
  readonly path: readonly string[];
  readonly type: string;
  /** A day, in UTC. */
  readonly firstSeen: string;
}

/** The columns that Muster adds to views. */
const FIXED: Readonly<Record<string, string>> = {
  environment: 'production or test.',
  company_id: 'The company.',
  id: 'The id of the record, unique within its list and company.',
  _first_seen_at: 'When the record came first.',
  _changed_at: 'When the record was last changed; in a view of changes, when this change was made.',
  _verified_at: 'As of when the list was last proved complete.',
  _rest: 'Keys of the record that have no column.',
  _valid_from: 'From when on the version was valid.',
  _valid_to: 'Until when the version was valid; null for the current one.',
  _is_current: 'Whether the record is so now.',
  _op: 'What the change was: insert, update, delete or restore.',
  _seq: 'The number of the change.',
  _next_seq: 'The number of the change that ended the version; null for the current one.',
  _idx: 'The place in the array, from 0.',
  _idx_2: 'The place in the inner array, from 0.',
};

const TEXT = /__text$/;

/** The description of a column that has no comment in the database. */
export function describe(column: string, key: DescribedKey | undefined): string {
  if (key !== undefined) return `${pathText(key.path)}, ${key.type}. First seen on ${key.firstSeen}.`;
  return FIXED[column] ?? (TEXT.test(column) ? `Values of ${column.replace(TEXT, '')} that do not fit its type, as texts.` : '');
}

/** A path with dots between its keys; a key that has a dot is in quotes. */
function pathText(path: readonly string[]): string {
  return path.map((key) => (key.includes('.') ? JSON.stringify(key) : key)).join('.');
}

/** A text as dbt takes it: braces would be read as Jinja, so they are written as texts of it. */
export function jinjaText(text: string): string {
  return text.replace(/\{[{%#]|[}%#]\}/g, (mark) => `{{ ${JSON.stringify(mark)} }}`);
}
