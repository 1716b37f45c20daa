import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Database } from '../../db/connection/database.js';
import { listAuditEntries } from '../../db/tables/audit.js';
import { companyFilterOf, namedPage } from '../plumbing/company-names.js';
import { CSV, NEXT_CURSOR } from '../plumbing/csv.js';
import { CompanySearchFilters, listQuery, pageOf, presentPage } from '../plumbing/models.js';
import { operationsOf } from '../plumbing/operations.js';
import { auditCsv } from './audit-csv.js';
import { AuditEntry, presentEntry } from './audit-model.js';

/** The form of the names of tokens and actions. A NUL or a lone surrogate would reach PostgreSQL, which refuses both. */
const Name = z
  .string()
  .max(100, 'must not have more than 100 characters')
  .refine((name) => /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]*$/u.test(name), 'must be a name as the answers have it');

const AuditQuery = listQuery({
  actor: Name.exactOptional(),
  action: Name.exactOptional(),
  ...CompanySearchFilters,
});

const { viewer } = operationsOf('audit');

export function auditRoutes({ db }: { readonly db: Database }): FastifyPluginAsyncZod {
  return async (api) => {
    api.get(
      '/audit',
      viewer('listAudit', 'List who did what, newest first', {
        description: `With Accept: ${CSV} the answer is a page of CSV, and next_cursor is in the header ${NEXT_CURSOR}.`,
        querystring: AuditQuery,
        response: {
          200: {
            description: 'A page of the audit',
            headers: {
              [NEXT_CURSOR]: { description: 'next_cursor, where the answer is CSV; absent at the end.', type: 'string' },
            },
            content: {
              'application/json': { schema: pageOf(AuditEntry) },
              [CSV]: { schema: z.string().describe('RFC 4180, with a line of names; details are JSON.') },
            },
          },
        },
      }),
      async ({ query, headers }, reply) => {
        const page = await namedPage(db, presentPage(await listAuditEntries(db, await companyFilterOf(db, query)), presentEntry));
        if (!headers.accept?.includes(CSV)) return page;
        if (page.next_cursor !== null) reply.header(NEXT_CURSOR, page.next_cursor);
        const csv = auditCsv(page.data);
        return reply.type(`${CSV}; charset=utf-8; header=present`).serializer(String).send(csv) as never;
      },
    );
  };
}
