import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Database } from '../../db/connection/database.js';
import { inTransaction } from '../../db/connection/transaction.js';
import {
  deleteQuarantinedToken,
  listQuarantinedTokens,
  QUARANTINE_REASONS,
  type QuarantinedTokenRow,
  UNNAMED,
} from '../../db/tables/quarantined-tokens.js';
import { audited } from '../plumbing/audit.js';
import { CompanyFilters, EnvironmentName, filterOf, listQuery, pageOf, presentPage, Time } from '../plumbing/models.js';
import { operationsOf } from '../plumbing/operations.js';

const QuarantinedToken = z
  .object({
    id: z.string(),
    environment: EnvironmentName,
    company_id: z.string().nullable().describe('null if the service did not say for which company it is.'),
    reason: z.enum(QUARANTINE_REASONS).describe('docs/authorization.md explains each reason.'),
    link_id: z.string().nullable().describe('The connect link that brought it; the audit names links by this id.'),
    received_at: Time,
  })
  .meta({ id: 'QuarantinedToken', description: 'A refresh token that belongs to no onboarded company; never the token itself.' });
export type QuarantinedTokenModel = z.output<typeof QuarantinedToken>;

const IdParams = z.object({ id: z.string().regex(/^\d{1,18}$/, 'must be the id of a quarantined token') });

const { viewer, admin } = operationsOf('companies');

export function quarantinedTokenRoutes({ db }: { readonly db: Database }): FastifyPluginAsyncZod {
  return async (api) => {
    api.get(
      '/quarantined-tokens',
      viewer('listQuarantinedTokens', 'List the quarantined refresh tokens, newest first', {
        querystring: listQuery(CompanyFilters),
        response: { 200: pageOf(QuarantinedToken) },
      }),
      async ({ query }) => presentPage(await listQuarantinedTokens(db, filterOf(query)), presentQuarantinedToken),
    );

    api.delete(
      '/quarantined-tokens/:id',
      admin('deleteQuarantinedToken', 'Delete a quarantined refresh token', {
        description: 'Permanently: if it was the only way back to its company, that company must authorize again.',
        params: IdParams,
        response: { 204: z.undefined() },
        problems: ['quarantined_token_not_found'],
      }),
      async ({ caller, params: { id } }, reply) => {
        const entry = { by: caller, action: 'quarantined_token.delete', details: { quarantined_token_id: id } } as const;
        await audited(
          db,
          entry,
          () => inTransaction(db, (tx) => deleteQuarantinedToken(tx, BigInt(id))),
          (company) => (company.companyId === UNNAMED ? undefined : company),
        );
        return reply.code(204).send();
      },
    );
  };
}

function presentQuarantinedToken(row: QuarantinedTokenRow): QuarantinedTokenModel {
  const { id, environment, companyId, reason, linkId, receivedAt } = row;
  return {
    id: String(id),
    environment,
    company_id: companyId === UNNAMED ? null : companyId,
    reason,
    link_id: linkId,
    received_at: receivedAt.toISOString(),
  };
}
