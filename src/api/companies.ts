import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { type CompanyKey, companyNotFound } from '../core/company.js';
import { Secret } from '../core/secret.js';
import { registerSecret } from '../observability/secret-registry.js';
import { ACTOR, audited, auditedRefusal } from './audit.js';
import { type CompanyModelSource, presentCompanies } from './company-model.js';
import { requestFirstSync } from './first-sync.js';
import { answers, Company, type CompanyModel, CompanyParams, CompanyQuery, Onboard, pageOf, Run, SyncCompany } from './models.js';
import type { ConnectionsPort, ConnectionView, OnboardingPort, RunsPort } from './ports.js';
import { presentRun } from './run-model.js';

export interface CompanyRoutesDependencies extends CompanyModelSource {
  readonly connections: ConnectionsPort;
  readonly onboarding: OnboardingPort;
  readonly runs: RunsPort;
}

const tags = ['companies'];
const ADDRESS = '/companies/:environment/:company_id';

export function companyRoutes(deps: CompanyRoutesDependencies): FastifyPluginAsyncZod {
  const { db, connections, onboarding, runs } = deps;

  return async (api) => {
    api.post(
      '/companies',
      {
        schema: {
          tags,
          operationId: 'onboardCompany',
          summary: 'Onboard a company, or give it a new token',
          description:
            'The refresh token is proved by a refresh before it is stored, and the first sync starts at once. 201 for a new company, 200 for one that had to authorize again.',
          body: Onboard,
          response: answers({ 200: Company, 201: Company }),
        },
      },
      async ({ body, log }, reply) => {
        registerSecret(body.refresh_token);
        const company = keyOf(body);
        const { created } = await audited(db, { action: 'company.onboard', company }, () =>
          onboarding.onboard({ ...company, refreshToken: new Secret(body.refresh_token) }),
        );
        await requestFirstSync(runs, company, created, log);
        return reply.code(created ? 201 : 200).send(await show(company));
      },
    );

    api.get(
      '/companies',
      {
        schema: {
          tags,
          operationId: 'listCompanies',
          summary: 'List the companies',
          querystring: CompanyQuery,
          response: answers({ 200: pageOf(Company) }),
        },
      },
      async ({ query: { status, environment, limit, cursor } }) => {
        const page = await connections.list({
          limit,
          ...(status && { status }),
          ...(environment && { environment }),
          ...(cursor && { cursor }),
        });
        return { data: await presentCompanies(deps, page.data), next_cursor: page.nextCursor ?? null };
      },
    );

    api.get(
      ADDRESS,
      {
        schema: {
          tags,
          operationId: 'showCompany',
          summary: 'Show a company',
          params: CompanyParams,
          response: answers({ 200: Company }),
        },
      },
      async ({ params }) => show(keyOf(params)),
    );

    api.post(
      `${ADDRESS}/sync`,
      {
        schema: {
          tags,
          operationId: 'syncCompany',
          summary: 'Sync a company now',
          description:
            'While a run of the company is queued or running, that run is the answer; one that waits to retry starts now.',
          params: CompanyParams,
          body: SyncCompany,
          response: answers({ 202: z.object({ run: Run }) }),
        },
      },
      async ({ params, body }, reply) => {
        const company = keyOf(params);
        const options = { ...(body?.mode && { mode: body.mode }), ...(body?.resources && { resources: body.resources }) };
        const run = await audited(db, { action: 'company.sync', company, details: options }, () =>
          runs.request({ company, trigger: 'manual', ...options }),
        );
        return reply.code(202).send({ run: presentRun(run) });
      },
    );

    for (const verb of ['pause', 'resume'] as const) {
      api.post(
        `${ADDRESS}/${verb}`,
        {
          schema: {
            tags,
            operationId: `${verb}Company`,
            summary: verb === 'pause' ? 'Stop syncing a company until it is resumed' : 'Sync a paused company again',
            params: CompanyParams,
            response: answers({ 200: Company }),
          },
        },
        async ({ params }) => {
          const company = keyOf(params);
          await audited(db, { action: `company.${verb}`, company }, () => connections[verb](company));
          return show(company);
        },
      );
    }

    api.delete(
      ADDRESS,
      {
        schema: {
          tags,
          operationId: 'removeCompany',
          summary: 'Remove a company',
          description: 'Its tokens and mirrored rows go; the audit stays.',
          params: CompanyParams,
          response: answers({ 204: z.undefined() }),
        },
      },
      async ({ params }, reply) => {
        const company = keyOf(params);
        await auditedRefusal(db, { action: 'company.remove', company }, () => connections.remove(company, ACTOR));
        return reply.code(204).send();
      },
    );
  };

  async function find(company: CompanyKey): Promise<ConnectionView> {
    const connection = await connections.find(company);
    if (connection) return connection;
    throw companyNotFound(company);
  }

  async function show(company: CompanyKey): Promise<CompanyModel> {
    const [model] = await presentCompanies(deps, [await find(company)]);
    return model!;
  }
}

function keyOf({ environment, company_id }: z.output<typeof CompanyParams>): CompanyKey {
  return { environment, companyId: company_id };
}
