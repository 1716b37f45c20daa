import type { FastifyBaseLogger } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { CompanyKey } from '../core/company.js';
import { isMusterError, MusterError } from '../core/errors.js';
import type { Database } from '../db/database.js';
import type { Runs } from '../runs/runs.js';
import { audited } from './audit.js';
import { answers, CompanyId, EnvironmentName, IdParams, listQuery, pageOf, presentPage } from './models.js';
import { presentRun, Run, RunStatusName } from './run-model.js';

const RunQuery = listQuery({
  company_id: CompanyId.exactOptional(),
  environment: EnvironmentName.exactOptional(),
  status: RunStatusName.exactOptional(),
});

/** A request without a body asks for a run of every active company. */
const SyncMany = z
  .strictObject({
    status: z.literal('failed').exactOptional().meta({ description: 'Only companies whose last run failed.' }),
    environment: EnvironmentName.exactOptional(),
  })
  .nullish();

const tags = ['runs'];

export function runRoutes({ db, runs }: { readonly db: Database; readonly runs: Runs }): FastifyPluginAsyncZod {
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
      async ({ query: { company_id, ...filter } }) => {
        const page = await runs.list({ ...filter, ...(company_id && { companyId: company_id }) });
        return presentPage(page, presentRun);
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

    api.post(
      '/syncs',
      {
        schema: {
          tags,
          operationId: 'syncCompanies',
          summary: 'Sync many companies now',
          description: 'Every active company, or only those whose last run failed, or only those of one environment.',
          body: SyncMany,
          response: answers({ 202: z.object({ queued: z.int().meta({ description: 'Runs that were asked for.' }) }) }),
        },
      },
      async ({ body }, reply) => {
        const filter = body ?? {};
        const queued = await audited(db, { action: 'companies.sync', details: filter }, () => runs.requestMany(filter));
        return reply.code(202).send({ queued });
      },
    );
  };
}

/**
 * Asks for the sync of a company that has just been authorized. Returns false when no sync starts now. It never throws: the token is
 * stored already, and a sync that cannot start must not look like a refused authorization.
 */
export async function requestFirstSync(
  runs: Runs,
  company: CompanyKey,
  created: boolean,
  log: FastifyBaseLogger,
): Promise<boolean> {
  try {
    await runs.request({ company, trigger: created ? 'onboarding' : 'reauthorization' });
    return true;
  } catch (error) {
    if (!isMusterError(error, 'company_paused'))
      log.error({ err: error }, 'The first sync could not be asked for; the schedule will');
    return false;
  }
}
