import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Catalogue } from '../catalogue/endpoint.js';
import { type CompanyKey, companyNotFound, keyText } from '../core/company.js';
import { Secret } from '../core/secret.js';
import type { Database } from '../db/database.js';
import type { ConnectionRow } from '../db/tables/connections.js';
import { findLists } from '../db/tables/lists.js';
import type { List } from '../generated/prisma/client.js';
import type { ConnectLinks } from '../oauth/connect-links.js';
import type { Connections } from '../oauth/connections.js';
import type { Onboarding } from '../oauth/onboarding.js';
import { registerSecret } from '../observability/secret-registry.js';
import type { Runs } from '../runs/runs.js';
import { ACTOR, audited, auditedRefusal } from './audit.js';
import { Company, type CompanyModel, CompanyStatusName, presentCompany } from './company-model.js';
import { answers, CompanyId, CompanyParams, EnvironmentName, listQuery, pageOf, ResourceName } from './models.js';
import { presentRun, Run } from './run-model.js';
import { requestFirstSync } from './runs.js';

export interface CompanyRoutesDependencies {
  readonly db: Database;
  readonly catalogue: Catalogue;
  readonly connectLinks: ConnectLinks;
  readonly connections: Connections;
  readonly onboarding: Onboarding;
  readonly runs: Runs;
}

const Onboard = z.strictObject({
  environment: EnvironmentName,
  company_id: CompanyId,
  refresh_token: z
    .string()
    .min(1, 'must not be empty')
    .regex(/^[\x20-\x7e]*$/, 'must be printable ASCII without line breaks')
    .meta({ format: 'password', description: 'Spent at once to prove it; the new pair is kept encrypted.' }),
});

/** A request without a body asks for the defaults. */
const SyncCompany = z
  .strictObject({
    resources: z
      .array(ResourceName)
      .min(1)
      .max(200)
      .exactOptional()
      .meta({ description: 'Resources of the catalogue; all of them if left out.' }),
    mode: z
      .enum(['resume', 'full'])
      .exactOptional()
      .meta({ description: 'Go on from the last checkpoints (the default), or read everything anew.' }),
  })
  .nullish();

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
          querystring: listQuery({ status: CompanyStatusName.exactOptional(), environment: EnvironmentName.exactOptional() }),
          response: answers({ 200: pageOf(Company) }),
        },
      },
      async ({ query }) => {
        const { data, nextCursor } = await connections.list(query);
        return { data: await presentCompanies(deps, data), next_cursor: nextCursor ?? null };
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
        const options = body ?? {};
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

  async function show(company: CompanyKey) {
    const connection = await connections.find(company);
    if (!connection) throw companyNotFound(company);
    const [model] = await presentCompanies(deps, [connection]);
    return model!;
  }
}

function keyOf({ environment, company_id }: z.output<typeof CompanyParams>): CompanyKey {
  return { environment, companyId: company_id };
}

/** The companies as the API shows them: their connections joined with what is known of their lists, in a handful of queries. */
export async function presentCompanies(
  {
    db,
    catalogue,
    connectLinks,
  }: {
    readonly db: Database;
    readonly catalogue: Pick<Catalogue, 'endpoints'>;
    readonly connectLinks: Pick<ConnectLinks, 'reauthorizationUrls'>;
  },
  connections: readonly ConnectionRow[],
): Promise<CompanyModel[]> {
  const companyIds = connections.map(({ companyId }) => companyId);
  // A list that left the catalogue keeps its rows and is walked no more. Shown, its proof would look stale for ever.
  const resources = catalogue.endpoints.map(({ resource }) => resource);
  const blocked = connections.filter(({ status }) => status === 'reauthorization_required');
  const [lists, authorizeUrls] = await Promise.all([
    findLists(db, { companyIds, resources }),
    connectLinks.reauthorizationUrls(blocked),
  ]);
  const listsOf = new Map<string, List[]>();
  for (const list of lists) listsOf.set(keyText(list), [...(listsOf.get(keyText(list)) ?? []), list]);
  return connections.map((connection) => {
    const own = keyText(connection);
    return presentCompany(connection, { lists: listsOf.get(own) ?? [], authorizeUrl: authorizeUrls.get(own) });
  });
}
