import { access } from './bearer.js';
import type { Grants } from './grants.js';
import type { Route } from './router.js';
import type { World } from './world.js';

/** GET /api/companies/{company_id}: the company's own record. */
export function companyRoute(world: World, grants: Grants): Route {
  return {
    method: 'GET',
    path: '/api/companies/{company_id}',
    handle: (asked) => access(grants, asked) ?? { status: 200, body: world.companyRecord(asked.companyId) },
  };
}
