import type { CompanyKey } from '../core/company.js';
import type { Transaction } from '../db/transaction.js';
import { lastTold } from './last-told.js';
import { type EventType, recordEvent } from './record-event.js';

export interface RunEnd {
  readonly id: string;
  readonly company: CompanyKey;
  readonly status: 'succeeded' | 'failed' | 'cancelled';
  /** Why it failed: an error code. */
  readonly reason?: string | undefined;
}

/** The company must authorize again, was removed, or its run went to another worker: told otherwise, or nothing to tell. */
const TOLD_OTHERWISE = new Set(['reauthorization_required', 'access_token_refused', 'company_not_found', 'fenced']);

/**
 * In the transaction that ends a run for good. What is told is that a company's runs fail now, and that they succeed again:
 * a company that fails every night is told of once. A company has one run at a time, so two ends never meet here.
 */
export async function recordRunEnd(tx: Transaction, { id, company, status, reason }: RunEnd): Promise<void> {
  if (status === 'cancelled' || (reason !== undefined && TOLD_OTHERWISE.has(reason))) return;
  const type: EventType = status === 'failed' ? 'run_failed' : 'run_recovered';
  const isKnownToFail = (await lastTold(tx, company, ['run_failed', 'run_recovered']))?.type === 'run_failed';
  if (isKnownToFail === (status === 'failed')) return;
  await recordEvent(tx, { type, company, change: id, details: { run_id: id, ...(reason !== undefined && { reason }) } });
}
