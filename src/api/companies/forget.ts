import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { CompanyKey } from '../../core/company.js';
import type { Database } from '../../db/connection/database.js';
import { inTransaction, type Transaction, WHOLE_LIST_MS } from '../../db/connection/transaction.js';
import { type ForgetDependencies, forgetRecord, type RecordToForget, unsuppress } from '../../erasure/forget.js';
import { findSimilarIds } from '../../mirror/stored-record.js';
import { registerSecret } from '../../observability/secret-registry.js';
import type { AuditAction } from '../plumbing/audit.js';
import { auditedRefusal, recordDone } from '../plumbing/audit.js';
import type { Caller } from '../plumbing/caller.js';
import { CompanyParams, Count, RecordId, ResourceName } from '../plumbing/models.js';
import { operationsOf } from '../plumbing/operations.js';

const ForgetBody = z.strictObject({
  resource: ResourceName,
  id: RecordId.describe("The record's id in the mirror; in a child list, it includes the parent's id."),
});
const Forgotten = z.object({
  erased: Count.describe('Rows erased from the mirror.'),
  found: z
    .literal(false)
    .optional()
    .describe(
      'Set if neither mirror, feed nor rejected records had anything of it. The id is only kept out from now on: it may be misspelt.',
    ),
  similar: z
    .array(z.string())
    .optional()
    .describe('If nothing was found: ids of the list that differ only in letter case or in the spaces around them.'),
});
const Lifted = z.object({ lifted: z.boolean().describe('Whether the record was marked.') });
export type ForgottenModel = z.output<typeof Forgotten>;
export type LiftedModel = z.output<typeof Lifted>;

const PROBLEMS = ['company_not_found', 'unknown_resource', 'mark_key_unreadable'] as const;

const { admin } = operationsOf('companies');

/** Forgets a record, and lets it in again. The audit says that a person was forgotten, and never which. */
export function forgetRoutes({ db, ...deps }: { readonly db: Database } & ForgetDependencies): FastifyPluginAsyncZod {
  /** The work and its audit entry commit in one transaction. */
  function asAudited<T>(
    action: AuditAction,
    { caller, params: company, body }: { caller: Caller; params: CompanyKey; body: z.output<typeof ForgetBody> },
    work: (tx: Transaction, record: RecordToForget) => Promise<T>,
  ): Promise<T> {
    const { resource, id } = body;
    // From here on, no log line of this process shows the id.
    registerSecret(id);
    const entry = { by: caller, action, company, details: { resource } };
    const recorded = async (tx: Transaction) => {
      const result = await work(tx, { list: { ...company, resource }, id });
      await recordDone(tx, entry);
      return result;
    };
    return auditedRefusal(db, entry, () => inTransaction(db, recorded, { timeoutMs: WHOLE_LIST_MS }));
  }

  return async (api) => {
    api.post(
      '/companies/:environment/:company_id/forget',
      admin('forgetRecord', 'Forget a person', {
        description:
          'Erases one record from mirror, feed, history and rejected records, with its children if it is a parent, and keeps it out of every later walk. An unknown id is kept out too, and `found` is false.',
        params: CompanyParams,
        body: ForgetBody,
        response: { 200: Forgotten },
        problems: PROBLEMS,
      }),
      async ({ caller, params, body }) => {
        const forget = (tx: Transaction, record: RecordToForget) => forgetRecord(tx, deps, record);
        const { rows: erased, isFound } = await asAudited('record.forget', { caller, params, body }, forget);
        const similar = isFound ? [] : await findSimilarIds(db, { ...params, resource: body.resource }, body.id);
        return { erased, ...(!isFound && { found: false as const }), ...(similar.length > 0 && { similar }) };
      },
    );

    api.post(
      '/companies/:environment/:company_id/forget/lift',
      admin('liftMarks', 'Let a forgotten person in again', {
        description: 'The next walk of the list writes the record again, if the service still has it.',
        params: CompanyParams,
        body: ForgetBody,
        response: { 200: Lifted },
        problems: PROBLEMS,
      }),
      async ({ caller, params, body }) => ({
        lifted: await asAudited('record.lift', { caller, params, body }, (tx, record) => unsuppress(tx, deps, record)),
      }),
    );
  };
}
