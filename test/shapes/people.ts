import type { Json } from '../warehouse/warehouse-fixture.js';

// The invented people of three companies over thirty nights: what is true of each of them on a night, whatever shape a service gives it.
// Everything is a function of the company, the person's number and the night, so that answers can be computed without reading the mirror.

export const NIGHTS = 30;
export const LAST_NIGHT = NIGHTS - 1;

export interface Staff {
  readonly companyId: string;
  readonly people: number;
  /** The night of the company's first walk. */
  readonly from: number;
  /** Every so manieth person has left long ago. */
  readonly leavers: number;
}

/** A pilot of five people decides the first types; a usual company and a large one follow. Their people have the same ids. */
export function staffs(usual: number, large: number): readonly Staff[] {
  return [
    { companyId: 'c0000000-0000-4000-8000-000000000001', people: 5, from: 0, leavers: 0 },
    { companyId: 'c0000000-0000-4000-8000-000000000002', people: usual, from: 4, leavers: 0 },
    { companyId: 'c0000000-0000-4000-8000-000000000003', people: large, from: 23, leavers: 4 },
  ];
}

interface Pay {
  readonly from: string;
  readonly amount: number;
}

interface Absence {
  readonly from: string;
  readonly to: string;
  readonly kind: 'vacation' | 'sick';
  readonly days: number;
}

export interface Person {
  readonly n: number;
  readonly night: number;
  readonly given: string;
  readonly family: string;
  readonly department: string;
  readonly hired: string;
  readonly left: string | null;
  /** At least one, in order. */
  readonly pay: readonly Pay[];
  readonly iban: string | null;
  readonly absences: readonly Absence[];
}

const DEPARTMENTS = ['Sales', 'Drift & IT', 'Økonomi', 'Human Resources', 'Lager', 'R&D'];

/** A day by its distance from 1 January 2015. */
export function dayOf(days: number): string {
  return new Date(Date.UTC(2015, 0, 1) + days * 86_400_000).toISOString().slice(0, 10);
}

/** The day of a night. */
function today(night: number): string {
  return dayOf(3_653 + night); // 1 January 2025 and later
}

/** The person on that night, if the service shows them. Some leave and come back, some join, some are deleted. */
export function personOf({ leavers }: Staff, n: number, night: number): Person | undefined {
  const isJoiner = n % 19 === 4 && n > 4;
  if ((isJoiner && night < 16) || (n % 11 === 3 && night >= 10 && night < 15) || (n % 13 === 5 && night >= 20)) return undefined;
  const hired = isJoiner ? today(16) : dayOf((n * 37) % 3_400);
  const base = 3_000 + n + 0.25 * (n % 4);
  return {
    n,
    night,
    given: `Given ${n}`,
    family: n % 31 === 8 && night >= 7 ? `Married ${n}` : `Family ${n}`,
    department: DEPARTMENTS[(n + (n % 17 === 2 && night >= 14 ? 1 : 0)) % DEPARTMENTS.length]!,
    hired,
    left: leavers > 0 && n % leavers === 1 && !isJoiner ? dayOf(3_400 + (n % 200)) : n % 23 === 6 && night >= 5 ? today(5) : null,
    pay: [
      { from: hired, amount: base },
      ...(n % 2 === 1 && !isJoiner ? [{ from: '2024-07-01', amount: base + 250.25 }] : []),
      ...(n % 4 === 1 && !isJoiner && night >= 11 ? [{ from: today(11), amount: base + 350.24 }] : []),
    ],
    // The first nights of a new installation are full of nulls.
    iban: night < 2 ? null : `NO93${String(86_011_117_000 + n + (n % 29 === 9 && night >= 13 ? 500_000 : 0))}`,
    absences:
      night < 2
        ? []
        : [
            ...(n % 3 === 0 ? [{ from: '2024-03-04', to: '2024-03-08', kind: 'vacation' as const, days: 5 }] : []),
            ...(n % 6 === 0 ? [{ from: '2024-11-11', to: '2024-11-12', kind: 'sick' as const, days: 1.5 + (n % 5) }] : []),
          ],
  };
}

export function peopleOf(staff: Staff, night: number): Person[] {
  if (night < staff.from) return [];
  return Array.from({ length: staff.people }, (_, n) => personOf(staff, n, night)).filter((person) => person !== undefined);
}

export type Members = Readonly<Record<string, Json>>;

/** What a service adds, drops and changes over the nights, besides what is true of the people. Shapes put it where they have such members. */
export function driftOf({ n, night }: Person): Members {
  return {
    employeeNumber: night < 15 ? 1_000 + n : `E-${1_000 + n}`, // a number becomes a text for all
    onLeave: night < 19 ? n % 7 === 0 : n % 7 === 0 ? 'partly' : 'no',
    share: night < 8 ? 1 : exact(`0.${8_333 + n}`), // digits grow
    badge: night < 2 ? null : night < 22 ? 10_000 + n : exact(`123456789012345.${100_000 + n}`),
    ...(night >= 3 && night < 12 && { nickName: n % 2 === 0 ? `Nick ${n}` : null }), // a key that comes and vanishes
    ...(night >= 6 && { 'Табельный номер': `ТН-${n}`, 社員番号: 70_000 + n, Αριθμός: `Α${n}` }),
    ...(night >= 9 && { costCentre: { id: 40 + (n % 9), name: `Centre ${n % 9}`, valid: { from: dayOf(n), to: null } } }),
    ...(night >= 17 && {
      certificates:
        n % 5 === 0 ? [{ name: `First aid ${n}`, validUntil: dayOf(4_000 + n), levels: [{ level: n % 3, at: dayOf(n) }] }] : [],
    }),
  };
}

/** A JSON number of more digits than a double holds. */
function exact(digits: string): string {
  return `exact ${digits}`;
}

/** The text of a record, with its exact numbers. */
export function textOf(record: Members): string {
  return JSON.stringify(record).replace(/"exact ([\d.]+)"/g, '$1');
}

/**
 * What came of a record on a bad night, and what converters from XML make of a list of one. `id`: the path of the id, which stays as it is.
 *
 *   night 18  a few people have values of other kinds everywhere: arrays are texts, objects lists, scalars objects
 *   night 21  from now on a fifth of the people have an object where others have an array of one
 */
export function distorted(record: Members, { n, night }: Person, id: readonly string[]): Members {
  if (night === 18 && n % 40 < 4) {
    return mapMembers(record, id, (value) => {
      if (Array.isArray(value)) return ['none', value[0] ?? null, value.length, [value]][n % 4] as Json;
      if (isMembers(value)) return n % 2 === 0 ? [value] : 'see below';
      return value === null ? {} : n % 2 === 0 ? { value } : [value];
    });
  }
  return night >= 21 && n % 5 === 0 ? unlisted(record) : record;
}

function unlisted(record: Members): Members {
  return mapMembers(record, [], (value) => {
    if (Array.isArray(value)) return value.length === 1 && isMembers(value[0]) ? unlisted(value[0]) : value;
    return isMembers(value) ? unlisted(value) : value;
  });
}

/** `steady`: the path of a value that is not changed. */
function mapMembers(record: Members, steady: readonly string[], change: (value: Json) => Json): Members {
  const [first, ...more] = steady;
  return Object.fromEntries(
    Object.entries(record).map(([key, value]) => {
      if (key !== first) return [key, change(value)];
      return [key, isMembers(value) && more.length > 0 ? mapMembers(value, more, change) : value];
    }),
  );
}

export function isMembers(value: Json | undefined): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
