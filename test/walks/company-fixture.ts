import type { Endpoint } from '../../src/catalogue/endpoint.js';
import { validateCatalogue } from '../../src/catalogue/validate.js';
import type { Database } from '../../src/db/connection/database.js';

/** Entries for the sandbox's lists, as a catalogue file would say them. */
export const ENTRIES = {
  employees: {
    method: 'GET',
    path: '/api/companies/{company_id}/employees',
    pager: { style: 'skip-take', in: 'query', skipName: 'skip', takeName: '$take', size: 10 },
  },
  departments: {
    method: 'POST',
    path: '/api/v2.0/companies/{company_id}/departments/list',
    pager: { style: 'skip-take', in: 'body', size: 10 },
  },
  absences: { method: 'GET', path: '/api/companies/{company_id}/absences', pager: { style: 'odata', size: 10 } },
  documents: {
    method: 'POST',
    path: '/api/v2.0/companies/{company_id}/documents/list',
    pager: { style: 'continuation', in: 'body', size: 10 },
  },
} as const;

/** The endpoints of a catalogue with these entries. */
export function endpointsOf(entries: Record<string, object>): readonly Endpoint[] {
  return validateCatalogue(entries, 'test').endpoints;
}

/** Every change of the feed that is stamped, in its order, without times. */
export async function feed({ pool }: Database, companyId: string): Promise<{ resource: string; id: string; op: string }[]> {
  const { rows } = await pool.query<{ resource: string; id: string; op: string }>(
    'SELECT resource, id, op FROM mirror.changes WHERE company_id = $1 ORDER BY seq',
    [companyId],
  );
  return rows;
}
