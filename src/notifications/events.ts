import type { CompanyKey } from '../core/company.js';
import { authorizationOf } from '../db/tables/connections.js';
import { type EventDetails, type EventType, insertNotification, lastEventOf } from '../db/tables/notifications.js';
import type { EndStatus } from '../db/tables/walks.js';
import type { Transaction } from '../db/transaction.js';

export interface NotificationEvent {
  readonly type: EventType;
  readonly company: CompanyKey;
  /** Names the state change among those of its type: the same one is recorded once, whoever sees it how often. */
  readonly change: string;
  readonly details?: EventDetails;
}

/**
 * Writes the event down in the transaction that changes the state: both are there or neither, so no change goes untold and
 * nothing is told that did not happen. Delivery comes later and may fail as long as it likes.
 */
export function recordEvent(tx: Transaction, { type, company, change, details = {} }: NotificationEvent): Promise<void> {
  return insertNotification(tx, { ...company, type, change: `${type} ${change}`, details });
}

/** In the transaction that gives the company's authorization up; the caller has locked the connection. */
export async function recordReauthorizationRequired(tx: Transaction, company: CompanyKey, reason: string): Promise<void> {
  const lost = await authorizationOf(tx, company);
  if (lost) await recordEvent(tx, { type: 'reauthorization_required', company, change: lost, details: { reason } });
}

/**
 * In the transaction that stores an authorization for the company; the caller has locked the connection. Nothing is told of a
 * company that is new or stood well: a recovery is told only after a loss that was told.
 */
export async function recordAuthorizationRestored(tx: Transaction, company: CompanyKey): Promise<void> {
  const last = await lastEventOf(tx, { ...company, types: ['reauthorization_required', 'authorization_restored'] });
  if (last?.type === 'reauthorization_required')
    await recordEvent(tx, { type: 'authorization_restored', company, change: last.id });
}

export interface EndedRun {
  readonly id: string;
  readonly company: CompanyKey;
  readonly status: EndStatus;
  /** Why it failed: an error code. */
  readonly reason?: string | undefined;
}

/** The company must authorize again, was removed, or its run went to another worker: told otherwise, or nothing to tell. */
const TOLD_OTHERWISE = new Set(['reauthorization_required', 'access_token_refused', 'company_not_found', 'fenced']);

/**
 * In the transaction that ends a run for good. What is told is that a company's runs fail now, and that they succeed again:
 * a company that fails every night is told of once. A company has one run at a time, so two ends never meet here.
 */
export async function recordRunEnd(tx: Transaction, { id, company, status, reason }: EndedRun): Promise<void> {
  if (status === 'cancelled' || (reason !== undefined && TOLD_OTHERWISE.has(reason))) return;
  const type: EventType = status === 'failed' ? 'run_failed' : 'run_recovered';
  const last = await lastEventOf(tx, { ...company, types: ['run_failed', 'run_recovered'] });
  const isKnownToFail = last?.type === 'run_failed';
  if (isKnownToFail === (status === 'failed')) return;
  await recordEvent(tx, { type, company, change: id, details: { run_id: id, ...(reason !== undefined && { reason }) } });
}
