import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Catalogue } from '../../catalogue/endpoint.js';
import type { Database } from '../../db/connection/database.js';
import { listedResources } from '../../db/tables/listed-resources.js';
import { operationsOf } from '../plumbing/operations.js';

const Resource = z
  .object({
    resource: z.string(),
    in_catalogue: z
      .boolean()
      .describe('false for a list that was mirrored before and is in the catalogue no more: its rows and changes stay.'),
  })
  .meta({ id: 'Resource', description: 'A list of the catalogue, or one that was mirrored before.' });
export type ResourceModel = z.output<typeof Resource>;

const { viewer } = operationsOf('schema');

export function resourceRoutes({
  db,
  catalogue,
}: {
  readonly db: Database;
  readonly catalogue: Catalogue;
}): FastifyPluginAsyncZod {
  return async (api) => {
    api.get(
      '/resources',
      viewer('listResources', 'List the names of the lists', {
        description: 'Those of the catalogue in its order, then those that were mirrored before.',
        response: { 200: z.object({ data: z.array(Resource) }) },
      }),
      async () => {
        const declared = catalogue.endpoints.map(({ resource }) => resource);
        const earlier = (await listedResources(db.prisma)).filter((resource) => !declared.includes(resource));
        return {
          data: [
            ...declared.map((resource) => ({ resource, in_catalogue: true })),
            ...earlier.map((resource) => ({ resource, in_catalogue: false })),
          ],
        };
      },
    );
  };
}
