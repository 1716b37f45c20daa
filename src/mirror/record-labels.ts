import type { CompanyKey } from '../core/company.js';
import { isObject, type Members } from '../core/json.js';
import type { Database } from '../db/connection/database.js';
import { Prisma } from '../generated/prisma/client.js';
import { mirrorTable } from './mirror-table.js';

/** A record of a company's list. */
export type RecordKey = CompanyKey & { readonly resource: string; readonly id: string };

/** Members that together are the name of a person: the first of each row that a record has. */
const NAME_PARTS = [
  ['firstName', 'givenName', 'first_name'],
  ['lastName', 'familyName', 'surname', 'last_name'],
] as const;

/**
 * Members that tell what a record is, the most telling one first. A person who decides on deletions needs to recognize records, and needs nothing else of
 * them: no address, no date of birth, no pay.
 */
const TELLING = ['displayName', 'fullName', 'name', 'title', 'fileName', 'description', 'number', 'code', 'type'];

const LOOKED_AT = [...NAME_PARTS.flat(), ...TELLING];

/** Characters of a member that are shown. */
const LONGEST = 80;

/** Labels of the living records among these, by `labelKey`. A record without such a member has none. */
export async function labelRecords(db: Database, records: readonly RecordKey[]): Promise<ReadonlyMap<string, string>> {
  const labels = new Map<string, string>();
  for (const resource of await mirroredAmong(db, [...new Set(records.map((record) => record.resource))])) {
    const asked = records.filter((record) => record.resource === resource);
    // A look-up each (docs/internals/planner.md).
    const rows = await db.prisma.$queryRaw<(Omit<RecordKey, 'resource'> & { members: Record<string, string> })[]>`
      SELECT environment, company_id::text AS "companyId", id, t.members
      FROM unnest(${asked.map(({ environment }) => environment)}::text[], ${asked.map(({ companyId }) => companyId)}::uuid[],
        ${asked.map(({ id }) => id)}::text[]) AS asked(environment, company_id, id)
      JOIN LATERAL (
        SELECT (SELECT COALESCE(jsonb_object_agg(m, left(r.data->>m, ${LONGEST}::int)), '{}') FROM unnest(${LOOKED_AT}::text[]) m
                WHERE jsonb_typeof(r.data->m) = 'string') AS members
        FROM ${Prisma.raw(mirrorTable(resource))} r WHERE r.environment = asked.environment AND r.company_id = asked.company_id
          AND r.id = asked.id COLLATE "C" AND r.deleted_at IS NULL LIMIT 1) t ON TRUE`;
    for (const row of rows) {
      const label = labelOf(row.members);
      if (label) labels.set(labelKey({ ...row, resource }), label);
    }
  }
  return labels;
}

/** The lists that have a table: a list that left the catalogue may have lost its table. */
async function mirroredAmong(db: Database, resources: readonly string[]): Promise<string[]> {
  if (resources.length === 0) return [];
  const rows = await db.prisma.$queryRaw<{ resource: string }[]>`
    SELECT resource FROM unnest(${resources}::text[], ${resources.map(mirrorTable)}::text[]) AS asked(resource, name)
    WHERE to_regclass(name) IS NOT NULL`;
  return rows.map(({ resource }) => resource);
}

export function labelKey({ environment, companyId, resource, id }: RecordKey): string {
  return JSON.stringify([environment, companyId, resource, id]);
}

/** The label of a record: of its own members, or of those of an object in it. Undefined where nothing tells what it is. */
export function labelOfRecord(record: Members): string | undefined {
  const inner = Object.values(record).filter(isObject);
  for (const members of [record, ...inner]) {
    const label = labelOf(members);
    if (label !== undefined) return [...label].slice(0, LONGEST).join('');
  }
  return undefined;
}

function labelOf(members: Members): string | undefined {
  const textAt = (name: string) => (typeof members[name] === 'string' ? members[name].trim() : '');
  const first = (names: readonly string[]) => names.map(textAt).find((text) => text !== '');
  const parts = NAME_PARTS.flatMap((names) => first(names) ?? []);
  return parts.length > 0 ? parts.join(' ') : first(TELLING);
}
