import type { HrShape } from './hr-shapes.js';
import { LAST_NIGHT, type Person, peopleOf, personOf, type Staff } from './people.js';

// Ten questions that people in HR ask, each as one query over the views of a list, and the answers as the invented people give them.

export interface Question {
  readonly name: string;
  query(shape: HrShape): string;
  /** The rows, in any order; numbers as texts without zeros at the end. */
  answer(shape: HrShape, staffs: readonly Staff[]): readonly (readonly (string | number | null)[])[];
}

const ASKED_OF = '2024-09-30';
const MONTHS = Array.from({ length: 14 }, (_, i) => new Date(Date.UTC(2024, i, 1)).toISOString().slice(0, 10));

function living(staffs: readonly Staff[]): { staff: Staff; person: Person }[] {
  return staffs.flatMap((staff) => peopleOf(staff, LAST_NIGHT).map((person) => ({ staff, person })));
}

/** How often each of these was found. */
function counted(keys: readonly (readonly string[])[]): (string | number)[][] {
  const counts = new Map<string, number>();
  for (const key of keys.map((each) => JSON.stringify(each))) counts.set(key, (counts.get(key) ?? 0) + 1);
  return [...counts].map(([key, count]) => [...(JSON.parse(key) as string[]), count]);
}

/** The nights of a company, from its first one. */
function nightsOf({ from }: Staff): number[] {
  return Array.from({ length: LAST_NIGHT + 1 - from }, (_, i) => from + i);
}

export const QUESTIONS: readonly Question[] = [
  {
    name: 'head count by department and month',
    query: ({ name, sql }) => `
SELECT m::date::text AS month, p.department, count(*)
FROM generate_series(timestamp '2024-01-01', '2025-02-01', '1 month') m
JOIN (${of(sql.people, name)}) p ON p.hired <= m::date AND (p.left_on IS NULL OR p.left_on > m::date)
GROUP BY 1, 2`,
    answer: (_, staffs) =>
      counted(
        MONTHS.flatMap((month) =>
          living(staffs)
            .filter(({ person: { hired, left } }) => hired <= month && (left === null || left > month))
            .map(({ person }) => [month, person.department]),
        ),
      ),
  },
  {
    name: 'salary as of a date',
    query: ({ name, sql }) => `
SELECT DISTINCT ON (company_id, id) company_id, id, amount
FROM (${of(sql.pay, name)}) p WHERE valid_from <= '${ASKED_OF}' ORDER BY company_id, id, valid_from DESC`,
    answer: (shape, staffs) =>
      living(staffs).flatMap(({ staff, person }) => {
        const pay = person.pay.findLast(({ from }) => from <= ASKED_OF);
        return pay === undefined ? [] : [[staff.companyId, shape.id(person.n), pay.amount]];
      }),
  },
  {
    name: 'joiners and leavers',
    query: ({ name, sql }) => `
SELECT d.month::text, d.what, count(*) FROM (${of(sql.people, name)}) p
CROSS JOIN LATERAL (VALUES ('joined', date_trunc('month', p.hired)::date), ('left', date_trunc('month', p.left_on)::date)) d (what, month)
WHERE d.month >= '2024-01-01' GROUP BY 1, 2`,
    answer: (_, staffs) => {
      const monthOf = (day: string) => `${day.slice(0, 7)}-01`;
      const both = living(staffs).flatMap(({ person: { hired, left } }) => [
        [monthOf(hired), 'joined'],
        ...(left === null ? [] : [[monthOf(left), 'left']]),
      ]);
      return counted(both.filter(([month]) => month! >= '2024-01-01'));
    },
  },
  {
    name: 'bank account',
    query: ({ name, sql }) => `SELECT company_id, id, iban FROM (${of(sql.accounts, name)}) a`,
    answer: (shape, staffs) => living(staffs).map(({ staff, person }) => [staff.companyId, shape.id(person.n), person.iban]),
  },
  {
    name: 'absences by employee',
    query: ({ name, sql }) => `SELECT company_id, id, kind, sum(days) FROM (${of(sql.absences, name)}) a GROUP BY 1, 2, 3`,
    answer: (shape, staffs) =>
      living(staffs).flatMap(({ staff, person }) =>
        person.absences.map(({ kind, days }) => [staff.companyId, shape.id(person.n), kind, days]),
      ),
  },
  {
    name: 'who changed what',
    query: ({ name, sql: { family } }) => `
SELECT company_id, id, before, after FROM (
  SELECT company_id, id, ${family} AS after, lag(${family}) OVER (PARTITION BY environment, company_id, id ORDER BY _seq) AS before
  FROM warehouse.${name}_history WHERE _op <> 'delete'
) v WHERE before <> after AND before LIKE 'Family%' AND after LIKE 'Married%'`,
    answer: (shape, staffs) =>
      staffs.flatMap((staff) =>
        Array.from({ length: staff.people }, (_, n) => n).flatMap((n) => {
          const names = nightsOf(staff).flatMap((night) => personOf(staff, n, night)?.family ?? []);
          return new Set(names).size < 2 ? [] : [[staff.companyId, shape.id(n), names[0]!, names.at(-1)!]];
        }),
      ),
  },
  {
    name: 'everything of one person',
    query: (shape) => `
SELECT _op, count(*) FROM warehouse.${shape.name}_history
WHERE company_id = 'c0000000-0000-4000-8000-000000000002' AND id = '${shape.id(3)}' AND _op <> 'update' GROUP BY 1`,
    answer: () => [
      ['insert', 1],
      ['delete', 1],
      ['restore', 1],
    ],
  },
  {
    name: 'completeness',
    query: ({ name }) => `
SELECT l.company_id, l.records, count(e.id) FROM warehouse.lists l
JOIN warehouse.${name} e USING (environment, company_id)
WHERE l.resource = '${name}' AND e._verified_at = l.last_verified_at GROUP BY 1, 2`,
    answer: (_, staffs) =>
      staffs.map((staff) => {
        const { length } = peopleOf(staff, LAST_NIGHT);
        return [staff.companyId, length, length];
      }),
  },
  {
    name: 'late lists',
    query: ({ name }) => `SELECT company_id FROM warehouse.lists WHERE is_late AND resource = '${name}'`,
    answer: (_, [pilot]) => [[pilot!.companyId]],
  },
  {
    name: 'deleted rows',
    query: ({ name }) => `
SELECT company_id, id FROM (
  SELECT DISTINCT ON (environment, company_id, id) * FROM warehouse.${name}_history ORDER BY environment, company_id, id, _seq DESC
) newest WHERE _op = 'delete'`,
    answer: (shape, staffs) =>
      staffs.flatMap((staff) =>
        Array.from({ length: staff.people }, (_, n) => n)
          .filter((n) => personOf(staff, n, LAST_NIGHT) === undefined)
          .filter((n) => nightsOf(staff).some((night) => personOf(staff, n, night) !== undefined))
          .map((n) => [staff.companyId, shape.id(n)]),
      ),
  },
];

function of(fragment: string, list: string): string {
  return fragment.replaceAll('$', () => list);
}

/** Rows as they are compared: in one order, numbers as the text of their value. */
export function sorted(rows: readonly (readonly unknown[])[]): string[] {
  return rows.map((row) => JSON.stringify(row.map(plain))).toSorted();
}

function plain(value: unknown): unknown {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && /^-?\d+\.\d+$/.test(value) ? value.replace(/\.?0+$/, '') : value;
}
