import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { CompanyKey } from '../core/company.js';
import type { Database } from '../db/database.js';
import { audited } from './audit.js';
import { answers, CompanyParams, ConnectLink, CreateConnectLink } from './models.js';
import type { ConnectLinksPort } from './ports.js';

export interface ConnectLinkRoutesDependencies {
  readonly db: Database;
  readonly connectLinks: ConnectLinksPort;
}

const tags = ['companies'];
const description =
  'Send it to an administrator of the company: it needs no token, starts the authorization flow, and is good for one company.';

export function connectLinkRoutes({ db, connectLinks }: ConnectLinkRoutesDependencies): FastifyPluginAsyncZod {
  async function create({ environment, companyId }: Pick<CompanyKey, 'environment'> & Partial<CompanyKey>) {
    const entry = {
      action: 'connect_link.create',
      details: { environment },
      ...(companyId && { company: { environment, companyId } }),
    } as const;
    const { url, expiresAt } = await audited(db, entry, () => connectLinks.create({ environment, companyId }));
    return { url, expires_at: expiresAt.toISOString() };
  }

  return async (api) => {
    api.post(
      '/companies/:environment/:company_id/connect-link',
      {
        schema: {
          tags,
          operationId: 'createCompanyConnectLink',
          summary: 'Make a link with which this company authorizes, for the first time or again',
          description,
          params: CompanyParams,
          response: answers({ 201: ConnectLink }),
        },
      },
      async ({ params: { environment, company_id } }, reply) =>
        reply.code(201).send(await create({ environment, companyId: company_id })),
    );

    api.post(
      '/connect-links',
      {
        schema: {
          tags,
          operationId: 'createConnectLink',
          summary: 'Make a link with which a company authorizes',
          description: `${description} Without company_id, it connects the one that is chosen on the consent screen.`,
          body: CreateConnectLink,
          response: answers({ 201: ConnectLink }),
        },
      },
      async ({ body: { environment, company_id } }, reply) =>
        reply.code(201).send(await create({ environment, ...(company_id && { companyId: company_id }) })),
    );
  };
}
