import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { type CompanyKey, keyText } from '../../core/company.js';
import type { Database } from '../../db/connection/database.js';
import type { PageQuery } from '../../db/statements/cursor.js';
import type { ConnectLinks } from '../../oauth/connect-links.js';
import type { Connections } from '../../oauth/connections.js';
import { audited, auditedRefusal, recordDone } from '../plumbing/audit.js';
import type { Caller } from '../plumbing/caller.js';
import { CompanyName } from '../plumbing/company-names.js';
import { csvOf } from '../plumbing/csv.js';
import { CompanyId, CompanyParams, EnvironmentName, filterOf, pageOf, Time } from '../plumbing/models.js';
import { operationsOf } from '../plumbing/operations.js';

const CreateConnectLink = z.strictObject({ environment: EnvironmentName, company_id: CompanyId.exactOptional() });

export const ConnectLink = z
  .object({
    url: z.string().meta({ format: 'uri', description: 'Shown only once: Muster keeps only its hash.' }),
    expires_at: Time,
  })
  .meta({ id: 'ConnectLink', description: 'An address that starts the authorization flow.' });

/** The most links that one call makes, so that its response and its page stay small. */
const MOST = 500;

const CreateReauthorizationLinks = z.strictObject({
  environment: EnvironmentName.exactOptional().describe('Both environments if left out.'),
  limit: z.int().min(1).max(MOST).default(MOST).describe(`Default and maximum: ${MOST}.`),
  cursor: z.string().exactOptional().describe('next_cursor of the previous response.'),
});

const ReauthorizationLink = z
  .object({
    environment: EnvironmentName,
    company_id: z.string(),
    company_name: CompanyName,
    url: z.string().meta({ format: 'uri', description: 'Anyone who has it may authorize for the company.' }),
    expires_at: Time,
  })
  .meta({ id: 'ReauthorizationLink', description: 'An address at which a company authorizes again.' });
export type ReauthorizationLinkModel = z.output<typeof ReauthorizationLink>;

const { operator } = operationsOf('companies');
const description =
  'Send it to an administrator of the company: it needs no token, starts the authorization flow, and connects one company.';

export function connectLinkRoutes({
  db,
  connectLinks,
  connections,
}: {
  readonly db: Database;
  readonly connectLinks: ConnectLinks;
  readonly connections: Connections;
}): FastifyPluginAsyncZod {
  async function create(by: Caller, { environment, companyId }: Pick<CompanyKey, 'environment'> & Partial<CompanyKey>) {
    const entry = {
      by,
      action: 'connect_link.create',
      environment,
      details: { environment },
      ...(companyId && { company: { environment, companyId } }),
    } as const;
    const { url, expiresAt } = await audited(db, entry, () => connectLinks.create({ environment, companyId }));
    return { url, expires_at: expiresAt.toISOString() };
  }

  return async (api) => {
    api.post(
      '/companies/:environment/:company_id/connect-link',
      operator('createCompanyConnectLink', 'Make a link with which this company authorizes, for the first time or again', {
        description,
        params: CompanyParams,
        response: { 201: ConnectLink },
        problems: ['environment_not_configured'],
      }),
      async ({ caller, params: company }, reply) => reply.code(201).send(await create(caller, company)),
    );

    api.post(
      '/connect-links',
      operator('createConnectLink', 'Make a link with which a company authorizes', {
        description: `${description} Without company_id, it connects the company chosen on the consent screen.`,
        body: CreateConnectLink,
        response: { 201: ConnectLink },
        problems: ['environment_not_configured'],
      }),
      async ({ caller, body }, reply) => reply.code(201).send(await create(caller, filterOf(body))),
    );

    api.post(
      '/connect-links/reauthorization',
      operator('createReauthorizationLinks', 'Make a link for every company that must authorize again', {
        description: `By company_id, at most ${MOST} a call; pass back next_cursor for the next ones. Each link is the company's authorize_url: it stays the same until the company has authorized or the link has expired.`,
        body: CreateReauthorizationLinks,
        response: { 201: pageOf(ReauthorizationLink) },
        problems: ['environment_not_configured'],
      }),
      async ({ caller: by, body: { environment, ...page } }, reply) => {
        const entry = { by, action: 'connect_links.create', ...(environment && { environment }) } as const;
        const links = await auditedRefusal(db, entry, () => createForAll(environment, page));
        await recordDone(db.prisma, { ...entry, details: { links: links.data.length } });
        return reply.code(201).send(links);
      },
    );
  };

  async function createForAll(environment: CompanyKey['environment'] | undefined, page: PageQuery) {
    if (environment) connectLinks.requireConfigured(environment);
    const { data, nextCursor } = await connections.list({
      ...(environment && { environment }),
      status: 'reauthorization_required',
      ...page,
    });
    const links = await connectLinks.reauthorizationLinks(data);
    const made = data.flatMap(({ name, ...company }): ReauthorizationLinkModel[] => {
      const link = links.get(keyText(company));
      // A company that has authorized since the list was read has no link.
      if (!link) return [];
      const expires_at = link.expiresAt.toISOString();
      const key = { environment: company.environment, company_id: company.companyId };
      return [{ ...key, ...(name !== null && { company_name: name }), url: link.url, expires_at }];
    });
    return { data: made, next_cursor: nextCursor ?? null };
  }
}

export function reauthorizationLinksCsv(links: readonly ReauthorizationLinkModel[]): string {
  return csvOf(links, ['environment', 'company_id', 'company_name', 'url', 'expires_at']);
}
