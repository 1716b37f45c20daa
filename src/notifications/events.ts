import type { CompanyKey, Environment } from '../core/company.js';
import type { Transaction } from '../db/connection/transaction.js';
import { authorizationOf } from '../db/tables/connections.js';
import { type EventDetails, type EventType, insertNotification, lastEventOf, type RunNews } from '../db/tables/notifications.js';
import type { EndStatus } from '../db/tables/walks.js';

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

/** In the transaction that writes the log of a resource's columns: one event, however many columns are new or have their first misfit. */
export async function recordSchemaChange(
  tx: Transaction,
  {
    environment,
    resource,
    position,
    added,
    misfitting,
  }: { environment: Environment; resource: string; position: number; added: number; misfitting: number },
): Promise<void> {
  if (added + misfitting === 0) return;
  const details = {
    resource,
    ...(added > 0 && { columns_added: added }),
    ...(misfitting > 0 && { columns_with_misfits: misfitting }),
  };
  const change = `schema_changed ${resource} ${position}`;
  await insertNotification(tx, { environment, companyId: null, type: 'schema_changed', change, details });
}

/** The company must authorize again, was removed, or its run went to another worker: told otherwise, or nothing to tell. */
const TOLD_OTHERWISE = new Set(['reauthorization_required', 'access_token_refused', 'company_not_found', 'fenced']);

/**
 * What the end of a run is news of, if people do not know it: that a company's runs fail now, or that they succeed again; a company that fails
 * every night is told of once. `reason`: why it failed, an error code.
 */
export function newsOfRunEnd({ status, reason }: { status: EndStatus; reason?: string | undefined }): RunNews | undefined {
  if (status === 'cancelled' || (reason !== undefined && TOLD_OTHERWISE.has(reason))) return undefined;
  return status === 'failed' ? 'run_failed' : 'run_recovered';
}
