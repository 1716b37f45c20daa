import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Database } from '../../db/connection/database.js';
import type { Runs } from '../../runs/runs.js';
import { audited } from '../plumbing/audit.js';
import { CompanyParams, ResourceName } from '../plumbing/models.js';
import { operationsOf } from '../plumbing/operations.js';
import { presentRun, Run } from './run-model.js';

export const Resources = z
  .array(ResourceName)
  .min(1)
  .max(200)
  .exactOptional()
  .meta({ description: 'Resources of the catalogue; all of them if left out.' });

export const RUN_REQUEST_PROBLEMS = [
  'company_not_found',
  'company_paused',
  'reauthorization_required',
  'unknown_resource',
] as const;

/** A request without a body asks for every list. */
const VerifyCompany = z.strictObject({ resources: Resources }).nullish();

const { operator } = operationsOf('companies');

export function verifyRoute({ db, runs }: { readonly db: Database; readonly runs: Runs }): FastifyPluginAsyncZod {
  return async (api) => {
    api.post(
      '/companies/:environment/:company_id/verify',
      operator('verifyCompany', 'Compare the service with the mirror', {
        description:
          'An independent reader reads the lists a second time and compares; it changes nothing. While such a run of the company is queued or running, the response is that run. It begins once no sync of the company is queued or running. `walks[].verify` of the run has the findings.',
        params: CompanyParams,
        body: VerifyCompany,
        response: { 202: z.object({ run: Run }) },
        problems: RUN_REQUEST_PROBLEMS,
      }),
      async ({ params, body, caller }, reply) => {
        const company = { environment: params.environment, companyId: params.company_id };
        const options = body ?? {};
        const run = await audited(db, { by: caller, action: 'company.verify', company, details: options }, () =>
          runs.requestVerification({ company, trigger: 'verify', ...options }),
        );
        return reply.code(202).send({ run: presentRun(run) });
      },
    );
  };
}
