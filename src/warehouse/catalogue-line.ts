import type { ColumnRow, Kinds } from '../db/tables/schema-columns.js';
import { decideType, mismatchesOf } from './column-types.js';

/** How many values of which kinds the column does not show. */
export function misfitKinds({ type, kinds }: ColumnRow): Kinds {
  return Object.fromEntries(mismatchesOf(type, kinds).map((kind) => [kind, kinds[kind]!]));
}

/**
 * The line of a catalogue entry that declares a type for the column's key; null if a declared type fits all values. It is the type of the newest twin, or
 * one that shows all values that were counted. `around`: the arrays around the key.
 */
export function catalogueLine(row: ColumnRow, around: readonly string[]): string | null {
  const { declared, type, twins, kinds, misfits, isKeptWhole } = row;
  const path = [...around, ...row.path];
  if (path.some((key) => key === '' || key === '__proto__') || (declared !== null && misfits === 0)) return null;
  const all =
    misfits === 0 ? undefined : decideType({ kinds, isFlattened: type !== 'jsonb' && !isKeptWhole, isDue: true, isWhole: true });
  return `columns: { ${yamlKey(path.join('.'))}: ${twins.at(-1)?.type ?? all ?? type} }`;
}

/** Words that YAML takes for something else than a text are quoted, as are other characters than those of usual keys. */
function yamlKey(key: string): string {
  return /^(?!(?:true|false|null)$)[a-z_][\w.-]*$/i.test(key) ? key : JSON.stringify(key);
}
