import type { CompanyKey, Environment } from '../core/company.js';
import type { Transaction } from '../db/connection/transaction.js';
import { authorizationOf } from '../db/tables/connections.js';
import { type EventDetails, type EventType, insertNotification, lastEventOf, type RunNews } from '../db/tables/notifications.js';
import type { EndStatus } from '../db/tables/walks.js';

export interface NotificationEvent {
  readonly type: EventType;
  readonly company: CompanyKey;
  /** Names the state change within its type, so that each change is recorded only once. */
  readonly change: string;
  readonly details?: EventDetails;
}

/**
 * Records the event in the transaction that changes the state: both are committed or neither, so every event is true and none
 * is missing. Delivery follows later and may fail for as long as it likes.
 */
export function recordEvent(tx: Transaction, { type, company, change, details = {} }: NotificationEvent): Promise<void> {
  return insertNotification(tx, { ...company, type, change: `${type} ${change}`, details });
}

/** Call it in the transaction that ends the company's authorization, with the connection locked. */
export async function recordReauthorizationRequired(tx: Transaction, company: CompanyKey, reason: string): Promise<void> {
  const lost = await authorizationOf(tx, company);
  if (lost) await recordEvent(tx, { type: 'reauthorization_required', company, change: lost, details: { reason } });
}

/**
 * Call it in the transaction that stores an authorization for the company, with the connection locked. Records a recovery only
 * after a recorded loss, and so nothing for a new company.
 */
export async function recordAuthorizationRestored(tx: Transaction, company: CompanyKey): Promise<void> {
  const last = await lastEventOf(tx, { ...company, types: ['reauthorization_required', 'authorization_restored'] });
  if (last?.type === 'reauthorization_required')
    await recordEvent(tx, { type: 'authorization_restored', company, change: last.id });
}

/** Call it in the transaction that writes the log of a resource's columns. Records one event, however many columns are new or have their first type mismatch. */
export async function recordSchemaChange(
  tx: Transaction,
  {
    environment,
    resource,
    position,
    added,
    mismatching,
  }: { environment: Environment; resource: string; position: number; added: number; mismatching: number },
): Promise<void> {
  if (added + mismatching === 0) return;
  const details = {
    resource,
    ...(added > 0 && { columns_added: added }),
    ...(mismatching > 0 && { columns_with_misfits: mismatching }),
  };
  const change = `schema_changed ${resource} ${position}`;
  await insertNotification(tx, { environment, companyId: null, type: 'schema_changed', change, details });
}

/** Reasons without news of their own: the company must authorize again or was removed, or its run went to another worker. */
const NOT_NEWS = new Set(['reauthorization_required', 'access_token_refused', 'company_not_found', 'fenced']);

/**
 * The news in the end of a run: a company's runs fail, or succeed again. A company that fails every night is reported once.
 * `reason`: the error code of the failure.
 */
export function newsOfRunEnd({ status, reason }: { status: EndStatus; reason?: string | undefined }): RunNews | undefined {
  if (status === 'cancelled' || (reason !== undefined && NOT_NEWS.has(reason))) return undefined;
  return status === 'failed' ? 'run_failed' : 'run_recovered';
}
