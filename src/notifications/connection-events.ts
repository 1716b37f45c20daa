import type { CompanyKey } from '../core/company.js';
import type { Transaction } from '../db/transaction.js';
import { lastTold } from './last-told.js';
import { recordEvent } from './record-event.js';

/** In the transaction that gives the company's authorization up, which holds its connection by then. */
export async function recordReauthorizationRequired(tx: Transaction, company: CompanyKey, reason: string): Promise<void> {
  const { environment, companyId } = company;
  // What was lost is named by the connection and by the fence, which every stored token moves.
  const [lost] = await tx.$queryRaw<{ change: string }[]>`
    SELECT concat_ws(' ', c.id, t.fence) AS change
    FROM muster.connections c LEFT JOIN muster.tokens t USING (environment, company_id)
    WHERE environment = ${environment} AND company_id = ${companyId}::uuid`;
  if (lost) await recordEvent(tx, { type: 'reauthorization_required', company, change: lost.change, details: { reason } });
}

/**
 * In the transaction that stores an authorization for the company, once it holds the connection. Nothing is told of a
 * company that is new or stood well.
 */
export async function recordAuthorizationRestored(tx: Transaction, company: CompanyKey): Promise<void> {
  const last = await lastTold(tx, company, ['reauthorization_required', 'authorization_restored']);
  if (last?.type === 'reauthorization_required')
    await recordEvent(tx, { type: 'authorization_restored', company, change: last.id });
}
