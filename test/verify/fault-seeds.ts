import type { CompanyKey } from '../../src/core/company.js';
import type { Database } from '../../src/db/connection/database.js';

/** Ways in which somebody may damage the mirror behind Muster's back, and what a second reading must call each. */
export const FAULTS = ['edited', 'digits', 'renamed-member', 'removed', 'marked-deleted', 'added', 'revived', 'swapped'] as const;
export type FaultKind = (typeof FAULTS)[number];

export interface SeededFault {
  readonly company: CompanyKey;
  readonly resource: string;
  readonly id: string;
  readonly kind: 'missing' | 'extra' | 'different';
}

interface Victim {
  readonly company: CompanyKey;
  /** Whose rows a swapped row turns up among. */
  readonly other: CompanyKey;
  readonly resource: string;
  /** The row that is damaged; where one is added, the id that it gets. */
  readonly id: string;
}

const EDITS: Partial<Record<FaultKind, string>> = {
  edited: `data = data || jsonb_build_object('seeded', 'by hand')`,
  // The same numbers, and other digits than were received: the values are equal, the texts are not.
  digits: `data = (SELECT jsonb_object_agg(name, CASE WHEN jsonb_typeof(value) = 'number'
    THEN to_jsonb((value::text || CASE WHEN value::text LIKE '%.%' THEN '0' ELSE '.0' END)::numeric) ELSE value END)
    FROM jsonb_each(data) AS member(name, value))`,
  'renamed-member': `data = (data - 'modifiedAt') || jsonb_build_object('ModifiedAt', data -> 'modifiedAt')`,
};

/** Damages the mirror by SQL, without a trace in changed_at, ledger or feed. What a second reading must find, in which company. */
export async function seedFault({ pool }: Pick<Database, 'pool'>, kind: FaultKind, victim: Victim): Promise<SeededFault[]> {
  const { company, other, resource, id } = victim;
  const table = `mirror."${resource}"`;
  const row = 'environment = $1 AND company_id = $2::uuid AND id = $3';
  const at = [company.environment, company.companyId, id];
  const found = (of: CompanyKey, as: SeededFault['kind']) => ({ company: of, resource, id, kind: as });
  const edit = EDITS[kind];
  const run = async (text: string, values: unknown[] = at) => {
    const { rowCount } = await pool.query(text, values);
    if (rowCount !== 1) throw new Error(`${kind} damaged ${rowCount} rows`);
  };
  if (edit !== undefined) {
    await run(`UPDATE ${table} SET ${edit} WHERE ${row}`);
    return [found(company, 'different')];
  }
  switch (kind as string) {
    case 'removed':
      await run(`DELETE FROM ${table} WHERE ${row}`);
      return [found(company, 'missing')];
    case 'marked-deleted':
      await run(`UPDATE ${table} SET deleted_at = now() WHERE ${row}`);
      return [found(company, 'missing')];
    case 'added':
      await run(
        `INSERT INTO ${table} (environment, company_id, id, data) VALUES ($1, $2::uuid, $3, jsonb_build_object('id', $3::text))`,
      );
      return [found(company, 'extra')];
    case 'revived':
      await run(
        `INSERT INTO ${table} (environment, company_id, id, data, first_seen_at, changed_at)
         VALUES ($1, $2::uuid, $3, '{}', now() - interval '1 year', now() - interval '1 day')`,
      );
      return [found(company, 'extra')];
    case 'swapped': {
      const twin = [other.environment, other.companyId, id];
      const { rows } = await pool.query(`SELECT FROM ${table} WHERE ${row}`, twin);
      if (rows.length > 0) {
        // Both companies have a record of this id: they change places.
        const exchange = `UPDATE ${table} t SET data = o.data FROM ${table} o WHERE o.environment = t.environment AND o.id = t.id AND t.id = $2
          AND t.environment = $1 AND t.company_id = ANY($3::uuid[]) AND o.company_id = ANY($3::uuid[]) AND o.company_id <> t.company_id`;
        await pool.query(exchange, [company.environment, id, [company.companyId, other.companyId]]);
        return [found(company, 'different'), found(other, 'different')];
      }
      await run(`UPDATE ${table} SET company_id = $4::uuid WHERE ${row}`, [...at, other.companyId]);
      return [found(company, 'missing'), found(other, 'extra')];
    }
    default:
      throw new Error(`nobody knows how to seed ${kind}`);
  }
}
