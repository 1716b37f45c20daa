import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Database } from '../../db/connection/database.js';
import type { Runs } from '../../runs/runs.js';
import { audited } from '../plumbing/audit.js';
import { answers, CompanyParams, ResourceName } from '../plumbing/models.js';
import { presentRun, Run } from './run-model.js';

/** A request without a body asks for every list. */
const VerifyCompany = z
  .strictObject({
    resources: z
      .array(ResourceName)
      .min(1)
      .max(200)
      .exactOptional()
      .meta({ description: 'Resources of the catalogue; all of them if left out.' }),
  })
  .nullish();

export function verifyRoute({ db, runs }: { readonly db: Database; readonly runs: Runs }): FastifyPluginAsyncZod {
  return async (api) => {
    api.post(
      '/companies/:environment/:company_id/verify',
      {
        config: { role: 'operator' },
        schema: {
          tags: ['companies'],
          operationId: 'verifyCompany',
          summary: 'Compare the service with the mirror',
          description:
            'An independent reader reads the lists a second time and compares; it changes nothing. While such a run of the company is queued or running, that run is the answer. It begins once no sync of the company is queued or running. What it found stands in `walks[].verify` of the run.',
          params: CompanyParams,
          body: VerifyCompany,
          response: answers({ 202: z.object({ run: Run }) }, [
            'company_not_found',
            'company_paused',
            'reauthorization_required',
            'unknown_resource',
          ]),
        },
      },
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
