import type { ColumnRow, ColumnType, Kind, Kinds } from '../db/tables/schema-columns.js';

/** This many values decide by themselves. */
export const MANY = 100;
/** This many values decide if a complete list has no others. */
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
    'as_declared',
    'number',
    'boolean',
  ],
  boolean: ['boolean', 'as_declared'],
  numeric: ['number', 'as_declared'],
  date: ['date', 'as_declared'],
  timestamp: ['timestamp', 'as_declared'],
  timestamptz: ['timestamptz'],
};

/** The type of a column that shows only values of the kind. */
const TYPE_OF_KIND: Readonly<Partial<Record<Kind, ColumnType>>> = {
  boolean: 'boolean',
  number: 'numeric',
  date: 'date',
  timestamp: 'timestamp',
  timestamptz: 'timestamptz',
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
  if (only === 'date' || only === 'timestamp' || only === 'timestamptz') return areEnough(total, isWhole) ? only : 'text';
  return seen.some(([kind]) => kind === 'array' || kind === 'object') ? 'jsonb' : 'text';
}

/** Whether so many values of one kind decide that the key has this kind. `isWhole`: it is known to have no others. */
export function areEnough(values: number, isWhole: boolean): boolean {
  return values >= MANY || (isWhole && values >= ENOUGH_OF_A_LIST);
}

/**
 * The kinds of which all living values of a column may be, the most counted first; none if the type was declared. Counts also include values that
 * have been corrected since, so only the mirror knows whether all are of a kind.
 */
export function twinCandidates({ type, declared, twins, kinds }: ColumnRow): TwinCandidate[] {
  if (type === 'jsonb' || declared !== null) return [];
  return (Object.keys(TYPE_OF_KIND) as Kind[])
    .map((kind) => ({ kind, type: TYPE_OF_KIND[kind]!, count: kinds[kind] ?? 0 }))
    .filter((each) => each.count >= ENOUGH_OF_A_LIST && ![type, ...twins.map((twin) => twin.type)].includes(each.type))
    .toSorted((a, b) => b.count - a.count);
}

export interface TwinCandidate {
  readonly kind: Kind;
  readonly type: ColumnType;
  readonly count: number;
}

/** The kind of which the mirror has to be asked, if the counts suggest that a twin would show all living values. `found`: the kinds that were just counted. */
export function kindToAsk(row: ColumnRow, found: ReadonlySet<Kind> | undefined): Kind | null {
  const candidates = twinCandidates(row);
  const due = candidates.find(({ kind, count }) => {
    const last = row.twinAnswers[kind];
    return !last || count >= 2 * last.count || found?.has(kind);
  });
  return (due ?? candidates.find(({ kind }) => kind === row.twinDue || row.twinAnswers[kind]?.waits))?.kind ?? null;
}

/** The kinds of value that a twin may have beside it: its values, and those that are shown only as texts. */
export function kindsWith(kind: Kind): Kind[] {
  return ['null', kind, ...(Object.keys(SHOWN_KIND) as Kind[]).filter((each) => SHOWN_KIND[each] === kind)];
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

/** The kinds of these that deserve an issue in a column of the type: a day or moment that means "forever" does not. */
export function kindsOfIssue(type: ColumnType, found: ReadonlySet<Kind>): Kind[] {
  const kinds = [...found].filter((kind) => !kind.endsWith('_beyond'));
  return mismatchesOf(type, Object.fromEntries(kinds.map((kind) => [kind, 1])));
}
