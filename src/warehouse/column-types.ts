import type { ColumnType, Kind, Kinds } from '../db/tables/schema-columns.js';

/** This many values decide by themselves. */
const MANY = 100;
/** This many days or moments decide if a complete list has no others. */
const ENOUGH_OF_A_LIST = 20;

/** The kinds of value that a column of the type shows; `jsonb` shows all. */
const FITTING: Readonly<Record<Exclude<ColumnType, 'jsonb'>, readonly Kind[]>> = {
  text: [
    'string',
    'date',
    'date_beyond',
    'timestamp',
    'timestamp_beyond',
    'timestamptz',
    'timestamptz_beyond',
    'number',
    'boolean',
  ],
  boolean: ['boolean'],
  numeric: ['number'],
  date: ['date'],
  timestamp: ['timestamp'],
  timestamptz: ['timestamptz'],
};

/** The facts on which a type is decided. */
interface Evidence {
  readonly kinds: Kinds;
  /** Objects of the key are flattened, and say nothing of the key's own column. */
  readonly isFlattened: boolean;
  /** The run that showed the key first has ended. */
  readonly isDue: boolean;
  /** That run proved the list complete. */
  readonly isWhole: boolean;
}

/**
 * The type of a column for the values seen so far; undefined while they are too few, or none. Days and moments need many
 * values: a single text that happens to be a day would make type mismatches of all later ones. For different kinds, the type is one that shows them all.
 */
export function decideType({ kinds, isFlattened, isDue, isWhole }: Evidence): ColumnType | undefined {
  const seen = Object.entries(kinds).filter(([kind, n]) => n > 0 && kind !== 'null' && !(isFlattened && kind === 'object'));
  const total = seen.reduce((sum, [, n]) => sum + n, 0);
  if (total === 0 || (total < MANY && !isDue)) return undefined;
  const only = onlyKind(seen.map(([kind]) => kind as Kind));
  if (only === 'boolean') return 'boolean';
  if (only === 'number') return 'numeric';
  if (only === 'date' || only === 'timestamp' || only === 'timestamptz')
    return total >= MANY || (isWhole && total >= ENOUGH_OF_A_LIST) ? only : 'text';
  return seen.some(([kind]) => kind === 'array' || kind === 'object') ? 'jsonb' : 'text';
}

/**
 * The kind of every value, if all have one kind. A day or moment outside the years that a column shows counts as the kind of the others. Without
 * others it is a moment, never a day: codes of digits look like days.
 */
function onlyKind(kinds: readonly Kind[]): Kind | undefined {
  const [kind, ...others] = new Set(kinds.map((each) => SHOWN_KIND[each] ?? each));
  if (kind === undefined || others.length > 0) return undefined;
  return kind === 'date' && !kinds.includes('date') ? undefined : kind;
}

const SHOWN_KIND: Readonly<Partial<Record<Kind, Kind>>> = {
  date_beyond: 'date',
  timestamp_beyond: 'timestamp',
  timestamptz_beyond: 'timestamptz',
};

/** The kinds of value that a column of the type does not show. */
export function mismatchesOf(type: ColumnType, kinds: Kinds): Kind[] {
  if (type === 'jsonb') return [];
  return (Object.keys(kinds) as Kind[]).filter((kind) => kind !== 'null' && !FITTING[type].includes(kind));
}
