import type { CompanyKey } from '../core/company.js';
import type { Transaction } from '../db/transaction.js';

/** What Muster tells of; docs/notifications.md says when. The names are kept for good: rename none. */
export const EVENT_TYPES = [
  'reauthorization_required',
  'authorization_restored',
  'run_failed',
  'run_recovered',
  'deletions_held',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** Facts of an event: codes, names, ids and counts of ours, never a text of the service. Kept as they are sent. */
export interface EventDetails {
  /** An error code, or why a company must authorize again. */
  readonly reason?: string;
  readonly run_id?: string;
  readonly resource?: string;
  readonly count?: number;
}

export interface NotificationEvent {
  readonly type: EventType;
  readonly company: CompanyKey;
  /** Names the state change among those of its type: the same one is recorded once, whoever sees it how often. */
  readonly change: string;
  readonly details?: EventDetails;
}

/**
 * Writes the event down in the transaction that changes the state: both are there or neither, so no change goes untold and
 * nothing is told that did not happen. Delivery is another's work and may fail as long as it likes.
 */
export async function recordEvent(tx: Transaction, { type, company, change, details = {} }: NotificationEvent): Promise<void> {
  const { environment, companyId } = company;
  await tx.notification.createMany({
    data: { type, change: `${type} ${change}`, environment, companyId, details: { ...details } },
    skipDuplicates: true,
  });
}
