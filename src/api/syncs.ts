import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Database } from '../db/database.js';
import { audited } from './audit.js';
import { answers, SyncMany } from './models.js';
import type { RunsPort } from './ports.js';

export function syncRoutes({ db, runs }: { readonly db: Database; readonly runs: RunsPort }): FastifyPluginAsyncZod {
  return async (api) => {
    api.post(
      '/syncs',
      {
        schema: {
          tags: ['runs'],
          operationId: 'syncCompanies',
          summary: 'Sync many companies now',
          description: 'Every active company, or only those whose last run failed, or only those of one environment.',
          body: SyncMany,
          response: answers({ 202: z.object({ queued: z.int().meta({ description: 'Runs that were asked for.' }) }) }),
        },
      },
      async ({ body }, reply) => {
        const filter = {
          ...(body?.status && { status: body.status }),
          ...(body?.environment && { environment: body.environment }),
        };
        const queued = await audited(db, { action: 'companies.sync', details: filter }, () => runs.requestMany(filter));
        return reply.code(202).send({ queued });
      },
    );
  };
}
