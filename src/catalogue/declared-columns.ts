import { z } from 'zod';
import { isObject } from '../core/json.js';
import { must } from '../pagers/spec.js';

/** The types that a column can be declared with. `numeric(p,s)` is one of type numeric. */
export type DeclarableType = 'text' | 'boolean' | 'numeric' | 'date' | 'timestamp' | 'timestamptz' | 'jsonb';

/** A catalogue entry's `columns`: the type for the key at each dot path, as it was declared but for spaces. */
export type DeclaredColumns = Readonly<Record<string, string>>;

const DECLARATION = /^(?:text|boolean|numeric|date|timestamp|timestamptz|jsonb|numeric\( *(\d{1,2}) *(?:, *(\d{1,2}) *)?\))$/;
const TYPES = must('text, boolean, numeric, numeric(p,s), date, timestamp, timestamptz or jsonb');
/** The digits that every reader of a decimal has room for. */
const MOST_DIGITS = 38;

const DECLARED_TYPE = z
  .string(TYPES)
  .regex(DECLARATION, TYPES)
  .refine(hasRoom, `must be numeric(p,s) with 1 to ${MOST_DIGITS} digits p, and at most p of them after the point`)
  .transform((declared) => declared.replaceAll(' ', ''));

export const COLUMNS_SCHEMA = z.record(z.string(), DECLARED_TYPE, must('a map of dot paths'));

function hasRoom(declared: string): boolean {
  const [, digits, scale] = DECLARATION.exec(declared) ?? [];
  if (digits === undefined) return true;
  return Number(digits) >= 1 && Number(digits) <= MOST_DIGITS && scale !== undefined && Number(scale) <= Number(digits);
}

export function typeOfDeclared(declared: string): DeclarableType {
  return declared.replace(/\(.*/, '') as DeclarableType;
}

/** A problem of the declaration with this path. */
interface ColumnFault {
  readonly path: string;
  readonly problem: string;
}

/** The problems of the paths of a catalogue entry's `columns`, read from the raw input. */
export function faultsOfColumns(columns: unknown): ColumnFault[] {
  if (!isObject(columns)) return [];
  const paths = Object.keys(columns);
  return paths.flatMap((path) => {
    const problem = problemOf(path, columns, paths);
    return problem === undefined ? [] : [{ path, problem }];
  });
}

function problemOf(path: string, columns: Readonly<Record<string, unknown>>, paths: readonly string[]): string | undefined {
  const names = path.split('.');
  if (names.includes('')) return 'must be a dot path: the names of members, with one dot between two';
  // PostgreSQL cannot store a null character, and for a JavaScript object __proto__ is no ordinary member.
  if (names.includes('__proto__') || path.includes('\0')) return 'must not hold the name __proto__, nor a null character';
  const outer = paths.find((each) => each !== path && path.startsWith(`${each}.`));
  if (outer === undefined) return undefined;
  return columns[outer] === 'jsonb'
    ? `is within ${outer}, which jsonb keeps whole; keep one of the two`
    : `is within ${outer}, which is declared ${String(columns[outer])} and so has no members; keep one of the two`;
}
