import type { ClaimedNotification } from './outbox.js';

/** Places for a person to go to; they are made when an event is sent, since links go stale. */
export interface Links {
  readonly publicUrl: URL;
  /** Starts the authorization flow for this company with one click. Undefined where there is no such flow. */
  readonly authorizeUrl?: string | undefined;
}

/** The JSON that is sent. Nothing secret is in it, but `authorize_url` is for whoever may act for the company. */
export function payloadOf(notification: ClaimedNotification, { publicUrl, authorizeUrl }: Links): string {
  const { id, type, occurredAt, environment, companyId, companyName, details } = notification;
  return JSON.stringify({
    id,
    type,
    occurred_at: occurredAt.toISOString(),
    environment,
    company_id: companyId,
    ...(companyName !== null && { company_name: companyName }),
    ...details,
    ...(authorizeUrl !== undefined && { authorize_url: authorizeUrl }),
    admin_url: `${publicUrl.href.replace(/\/$/, '')}${adminPath(notification)}`,
  });
}

function adminPath({ type, environment, companyId, details }: ClaimedNotification): string {
  switch (type) {
    case 'run_failed':
    case 'run_recovered':
      return `/api/runs/${details.run_id}`;
    case 'deletions_held':
      return '/api/holds?status=open';
    case 'reauthorization_required':
    case 'authorization_restored':
      return `/api/companies/${environment}/${companyId}`;
  }
}
