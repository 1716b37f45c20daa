import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { MusterError } from '../core/errors.js';
import type { Database } from '../db/database.js';
import { audited } from './audit.js';
import { answers, IdParams, pageOf, Run, RunQuery } from './models.js';
import type { RunsPort } from './ports.js';
import { presentRun } from './run-model.js';

const tags = ['runs'];

export function runRoutes({ db, runs }: { readonly db: Database; readonly runs: RunsPort }): FastifyPluginAsyncZod {
  return async (api) => {
    api.get(
      '/runs',
      {
        schema: {
          tags,
          operationId: 'listRuns',
          summary: 'List the runs, newest first',
          querystring: RunQuery,
          response: answers({ 200: pageOf(Run) }),
        },
      },
      async ({ query: { company_id, environment, status, limit, cursor } }) => {
        const page = await runs.list({
          limit,
          ...(company_id && { companyId: company_id }),
          ...(environment && { environment }),
          ...(status && { status }),
          ...(cursor && { cursor }),
        });
        return { data: page.data.map(presentRun), next_cursor: page.nextCursor ?? null };
      },
    );

    api.get(
      '/runs/:id',
      { schema: { tags, operationId: 'showRun', summary: 'Show a run', params: IdParams, response: answers({ 200: Run }) } },
      async ({ params: { id } }) => {
        const run = await runs.find(id);
        if (!run) throw new MusterError('run_not_found', `There is no run ${id}: GET /api/runs lists them.`);
        return presentRun(run);
      },
    );

    api.post(
      '/runs/:id/cancel',
      {
        schema: {
          tags,
          operationId: 'cancelRun',
          summary: 'Cancel a run',
          description: 'A queued run ends at once, a running one before its next page; one that has ended stays as it is.',
          params: IdParams,
          response: answers({ 200: Run }),
        },
      },
      async ({ params: { id } }) =>
        presentRun(await audited(db, { action: 'run.cancel', details: { run_id: id } }, () => runs.cancel(id))),
    );
  };
}
