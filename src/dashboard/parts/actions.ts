import type { ApiCall } from '../../api/plumbing/in-process-api.js';
import type { Role } from '../../db/tables/named-tokens.js';

type Fields = Readonly<Record<string, string>>;

/** An action that a person can do on a page, and its call of the API. */
export interface Action {
  /** The accessible name of its button. */
  readonly label: string;
  /** The role that may do it: an operator, if unset. Other people do not see the button. */
  readonly role?: Role;
  readonly call: (fields: Fields) => ApiCall;
  /** The message after the action. */
  readonly done: string;
  readonly tone?: 'main' | 'danger';
}

const part = (text: string | undefined) => encodeURIComponent(text ?? '');
export const ofCompany = ({ environment, company_id }: Fields) => `/api/companies/${part(environment)}/${part(company_id)}`;
const post = (path: string, body?: unknown): ApiCall => ({ method: 'POST', path, ...(body !== undefined && { body }) });

/** Actions by their names in the addresses of forms. */
export const ACTIONS = {
  'company.sync': {
    label: 'Sync now',
    tone: 'main',
    call: (fields) => post(`${ofCompany(fields)}/sync`),
    done: 'A sync was requested. It is at the top of the runs.',
  },
  'company.full': {
    label: 'Full resync',
    call: (fields) => post(`${ofCompany(fields)}/sync`, { mode: 'full' }),
    done: 'A full resync was requested: everything is read again.',
  },
  'company.verify': {
    label: 'Verify',
    call: (fields) => post(`${ofCompany(fields)}/verify`),
    done: 'Muster reads the service a second time and compares it with the mirror, which stays as it is. The run is at the top of the runs.',
  },
  'company.pause': {
    label: 'Pause',
    call: (fields) => post(`${ofCompany(fields)}/pause`),
    done: 'The company is paused: it is not synced until it is resumed.',
  },
  'company.resume': {
    label: 'Resume',
    call: (fields) => post(`${ofCompany(fields)}/resume`),
    done: 'The company is synced again.',
  },
  'company.remove': {
    label: 'Remove',
    role: 'admin',
    tone: 'danger',
    call: (fields) => ({ method: 'DELETE', path: ofCompany(fields) }),
    done: 'The company was removed, with its tokens and mirrored rows.',
  },
  'record.forget': {
    label: 'Forget',
    role: 'admin',
    tone: 'danger',
    call: ({ resource, id, ...fields }) => post(`${ofCompany(fields)}/forget`, { resource, id }),
    done: 'The person was forgotten, and is kept out of every later sync.',
  },
  'record.lift': {
    label: 'Let in again',
    role: 'admin',
    call: ({ resource, id, ...fields }) => post(`${ofCompany(fields)}/forget/lift`, { resource, id }),
    done: 'The next sync writes the record again, if the service still has it.',
  },
  'company.link': {
    label: 'Connect link',
    call: (fields) => post(`${ofCompany(fields)}/connect-link`),
    done: 'The link was made.',
  },
  'connect_link.create': {
    label: 'Make a link',
    tone: 'main',
    call: ({ environment, company_id }) => post('/api/connect-links', { environment, ...(company_id && { company_id }) }),
    done: 'The link was made.',
  },
  'connect_links.create': {
    label: 'Make the links',
    tone: 'main',
    call: ({ environment, cursor }) => post('/api/connect-links/reauthorization', { environment, ...(cursor && { cursor }) }),
    done: 'The links were made.',
  },
  'held_tokens.release': {
    label: 'Release the tokens',
    call: ({ environment }) => post('/api/held-tokens/release', { ...(environment && { environment }) }),
    done: 'Muster refreshes tokens again: one at a time, until ten in a row were granted.',
  },
  'companies.failed': {
    label: 'Sync what failed',
    call: ({ environment }) => post('/api/syncs', { status: 'failed', ...(environment && { environment }) }),
    done: 'A sync was requested for every company whose last run failed.',
  },
  'companies.sync': {
    label: 'Sync all',
    call: ({ environment }) => post('/api/syncs', { ...(environment && { environment }) }),
    done: 'A sync was requested for every active company.',
  },
  'run.cancel': {
    label: 'Cancel',
    tone: 'danger',
    call: ({ id }) => post(`/api/runs/${part(id)}/cancel`),
    done: 'The run is being cancelled: it stops before its next page.',
  },
  'hold.approve': {
    label: 'Approve',
    tone: 'danger',
    call: ({ id, reason }) => post(`/api/holds/${part(id)}/approve`, reason ? { reason } : undefined),
    done: 'Approved: rows that the newest verified walk did not receive are marked deleted.',
  },
  'holds.approve_grants': {
    label: 'Approve all of cause grant',
    tone: 'danger',
    call: ({ environment, reason }) => post('/api/holds/approve', { environment, cause: 'grant', ...(reason && { reason }) }),
    done: 'Approved up to 200 holds: rows that the new grants do not show are marked deleted. Holds whose list is being walked are still here.',
  },
  'hold.reject': {
    label: 'Reject',
    call: ({ id, reason }) => post(`/api/holds/${part(id)}/reject`, reason ? { reason } : undefined),
    done: 'Rejected: the rows stay.',
  },
  'schema.rebuild': {
    label: 'Count again',
    call: ({ resource }) => post('/api/schema/rebuild', { ...(resource && { resource }) }),
    done: 'A worker counts the columns again. Their names and types stay.',
  },
  'notification.redeliver': {
    label: 'Send again',
    call: ({ id }) => post(`/api/notifications/${part(id)}/redeliver`),
    done: 'Muster sends the notification once more.',
  },
  'notifications.redeliver': {
    label: 'Send all again',
    call: ({ environment }) => post('/api/notifications/redeliver', environment ? { environment } : undefined),
    done: 'Muster sends all undelivered notifications once more.',
  },
  'notification.test': {
    label: 'Send a test',
    call: ({ environment }) => post('/api/notifications/test', environment ? { environment } : undefined),
    done: 'Muster sends a test: it is at the top, and shows its outcome.',
  },
  'token.create': {
    label: 'Make the token',
    role: 'admin',
    tone: 'main',
    call: ({ name, role, expires_at }) =>
      post('/api/tokens', { name, role, ...(expires_at && { expires_at: `${expires_at}T00:00:00Z` }) }),
    done: 'The token was made.',
  },
  'token.delete': {
    label: 'Withdraw',
    role: 'admin',
    tone: 'danger',
    call: ({ id }) => ({ method: 'DELETE', path: `/api/tokens/${part(id)}` }),
    done: 'The token was withdrawn: it no longer works, and its sessions have ended.',
  },
} as const satisfies Record<string, Action>;

export type ActionName = keyof typeof ACTIONS;

export function roleFor(name: ActionName): Role {
  const { role = 'operator' }: Action = ACTIONS[name];
  return role;
}

export function findAction(name: string): Action | undefined {
  return Object.hasOwn(ACTIONS, name) ? ACTIONS[name as ActionName] : undefined;
}
