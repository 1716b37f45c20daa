import type { FastifyBaseLogger } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { CompanyKey } from '../../core/company.js';
import { boundsWithin } from '../../core/days.js';
import { isMusterError, MusterError } from '../../core/errors.js';
import type { Database } from '../../db/connection/database.js';
import { RUN_TRIGGERS } from '../../db/tables/runs.js';
import { estimateRuns } from '../../db/tables/walks.js';
import type { Runs } from '../../runs/runs.js';
import type { Schedule } from '../../runs/schedule.js';
import { audited } from '../plumbing/audit.js';
import { companyFilterOf, namedPage, withCompanyNames } from '../plumbing/company-names.js';
import { CompanySearchFilters, Day, IdParams, listQuery, Moment, pageOf, presentPage, ResourceName } from '../plumbing/models.js';
import { operationsOf } from '../plumbing/operations.js';
import { presentRun, Run, type RunModel, RunStatusName } from './run-model.js';

const RunQuery = listQuery({
  ...CompanySearchFilters,
  status: RunStatusName.exactOptional(),
  trigger: z.enum(RUN_TRIGGERS).exactOptional(),
  resource: ResourceName.exactOptional().describe(
    'Runs with a walk of this list. A page may then be shorter than `limit`, or empty, although more follow.',
  ),
  day: Day.exactOptional(),
  since: Moment.exactOptional().describe('Runs with this `created_at` or a later one.'),
  until: Moment.exactOptional().describe('Runs with an earlier `created_at`.'),
});

const { viewer, operator } = operationsOf('runs');

interface RunRoutesDependencies {
  readonly db: Database;
  readonly runs: Runs;
  readonly schedule: Pick<Schedule, 'timezone'>;
}

export function runRoutes({ db, runs, schedule }: RunRoutesDependencies): FastifyPluginAsyncZod {
  return async (api) => {
    api.get(
      '/runs',
      viewer('listRuns', 'List the runs, newest first', { querystring: RunQuery, response: { 200: pageOf(Run) } }),
      async ({ query: { day, ...query } }) => {
        const bounds = boundsWithin({ day, ...query }, schedule.timezone);
        const page = await runs.list({ ...(await companyFilterOf(db, query)), ...bounds });
        const estimates = await estimateRuns(db.prisma, {
          ids: page.data.filter(({ status }) => status === 'running').map(({ id }) => id),
        });
        return namedPage(
          db,
          presentPage(page, (run) => withEstimate(presentRun(run), estimates)),
        );
      },
    );

    api.get(
      '/runs/:id',
      viewer('showRun', 'Show a run', { params: IdParams, response: { 200: Run }, problems: ['run_not_found'] }),
      async ({ params: { id } }) => {
        const [run] = await runs.findAll([id]);
        if (!run) throw new MusterError('run_not_found', `There is no run ${id}: GET /api/runs lists them.`);
        const [named] = await withCompanyNames(db, [withEstimate(presentRun(run), await estimateRuns(db.prisma, { ids: [id] }))]);
        return named!;
      },
    );

    api.post(
      '/runs/:id/cancel',
      operator('cancelRun', 'Cancel a run', {
        description: 'A queued run ends at once, a running run before its next page. A run that has ended stays as it is.',
        params: IdParams,
        response: { 200: Run },
        problems: ['run_not_found'],
      }),
      async ({ caller, params: { id } }) =>
        presentRun(
          await audited(
            db,
            { by: caller, action: 'run.cancel', details: { run_id: id } },
            () => runs.cancel(id),
            (run) => run,
          ),
        ),
    );
  };
}

function withEstimate(run: RunModel, estimates: ReadonlyMap<string, number>): RunModel {
  return { ...run, estimated_seconds_left: estimates.get(run.id) ?? null };
}

/**
 * Requests the sync of a company that has just authorized. Returns false if no sync starts now. It never throws: the token is already
 * stored, and a sync that cannot start must not look like a refused authorization.
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
      log.error({ err: error }, 'The first sync could not be requested; the schedule will request it');
    return false;
  }
}
