import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { CompanyKey } from '../core/company.js';
import type { Database } from '../db/database.js';
import type { ConnectLinks } from '../oauth/connect-links.js';
import { audited } from './audit.js';
import { answers, CompanyId, CompanyParams, EnvironmentName, Time } from './models.js';

const CreateConnectLink = z.strictObject({ environment: EnvironmentName, company_id: CompanyId.exactOptional() });

export const ConnectLink = z
  .object({
    url: z.string().meta({ format: 'uri', description: 'Shown this once: only its hash is kept.' }),
    expires_at: Time,
  })
  .meta({ id: 'ConnectLink', description: 'An address that starts the authorization flow.' });

const tags = ['companies'];
const description =
  'Send it to an administrator of the company: it needs no token, starts the authorization flow, and is good for one company.';

export function connectLinkRoutes({
  db,
  connectLinks,
}: {
  readonly db: Database;
  readonly connectLinks: ConnectLinks;
}): FastifyPluginAsyncZod {
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
