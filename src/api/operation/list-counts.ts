import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Catalogue } from '../../catalogue/endpoint.js';
import type { Clock } from '../../core/clock.js';
import { singleFlight } from '../../core/single-flight.js';
import type { StaleAfterHours } from '../../core/stale-after.js';
import type { Database } from '../../db/connection/database.js';
import { readByIndex } from '../../db/statements/by-index.js';
import { countListStates, type ListCounts as ListCountsRow } from '../../db/tables/list-counts.js';
import { LIST_PROOFS, LIST_STATES } from '../../db/tables/list-states.js';
import { Count, EnvironmentName, queryOf, ResourceName } from '../plumbing/models.js';
import { operationsOf } from '../plumbing/operations.js';

const ListCounts = z
  .object({
    environment: EnvironmentName,
    resource: z.string(),
    lists: Count.describe('Companies of the environment: each has the list, or is said not to.'),
    proofs: z
      .object(countsBy(LIST_PROOFS))
      .describe('By their last proof, as `lists` of GET /api/overview counts them. The sum is `lists`.'),
    states: z.object(countsBy(LIST_STATES)).describe('By their state, as each company has it. The sum is `lists`.'),
    first_proof_overdue: Count.describe('As GET /api/overview has it.'),
    unverified: Count.describe('The newest walk that read them to their end proved nothing.'),
  })
  .meta({ id: 'ListCounts', description: 'How many companies have a list in which state.' });
export type ListCountsModel = z.output<typeof ListCounts>;

function countsBy<Name extends string>(names: readonly Name[]): Record<Name, typeof Count> {
  return Object.fromEntries(names.map((name) => [name, Count])) as Record<Name, typeof Count>;
}

/** One response serves all callers for so long. */
const KEEP_MS = 2_000;

export interface ListCountsRouteDependencies {
  readonly db: Database;
  readonly clock: Clock;
  readonly catalogue: Catalogue;
  readonly staleAfterHours: StaleAfterHours;
}

const { viewer } = operationsOf('operation');

export function listCountsRoute(deps: ListCountsRouteDependencies): FastifyPluginAsyncZod {
  const { db, catalogue, staleAfterHours } = deps;
  const resources = catalogue.endpoints.map(({ resource }) => resource);
  const counts = singleFlight(() => readByIndex(db, (tx) => countListStates(tx, { resources, staleAfterHours })), {
    ...deps,
    keepMs: KEEP_MS,
  });

  return async (api) => {
    api.get(
      '/list-counts',
      viewer('countLists', 'Count the lists by environment, resource and state', {
        description:
          'The lists of the catalogue of every company. GET /api/companies finds the companies of each count: by `environment`, `resource`, and `state` or `proof`.',
        querystring: queryOf({ environment: EnvironmentName.exactOptional(), resource: ResourceName.exactOptional() }),
        response: { 200: z.object({ data: z.array(ListCounts) }) },
      }),
      async ({ query: { environment, resource } }) => ({
        data: (await counts())
          .filter((one) => environment === undefined || one.environment === environment)
          .filter((one) => resource === undefined || one.resource === resource)
          .map(presentCounts),
      }),
    );
  };
}

function presentCounts(row: ListCountsRow): ListCountsModel {
  const { environment, resource, total, states, firstProofOverdue, unverified, verified, late, never, unavailable } = row;
  return {
    environment,
    resource,
    lists: total + unavailable,
    proofs: { verified, late, never, unavailable },
    states,
    first_proof_overdue: firstProofOverdue,
    unverified,
  };
}
