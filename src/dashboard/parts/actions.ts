import type { ApiCall } from '../../api/plumbing/in-process-api.js';
import type { Role } from '../../db/tables/named-tokens.js';

/** Fields of a form by their names. */
type Fields = Readonly<Record<string, string>>;

/** Something that a person can do on a page, and the call of the API that does it. */
export interface Action {
  /** The accessible name of its button. */
  readonly label: string;
  /** Who may do it: others do not see the button. */
  readonly role: Role;
  readonly call: (fields: Fields) => ApiCall;
  /** What the page says once it is done. */
  readonly done: string;
  readonly tone?: 'main' | 'danger';
}

const part = (text: string | undefined) => encodeURIComponent(text ?? '');
const ofCompany = ({ environment, company_id }: Fields) => `/api/companies/${part(environment)}/${part(company_id)}`;
const post = (path: string, body?: unknown): ApiCall => ({ method: 'POST', path, ...(body !== undefined && { body }) });

/** By the names that stand in the addresses of forms. */
export const ACTIONS = {
  'company.sync': {
    label: 'Sync now',
    role: 'operator',
    tone: 'main',
    call: (fields) => post(`${ofCompany(fields)}/sync`),
    done: 'A sync was asked for. It stands at the top of the runs.',
  },
  'company.full': {
    label: 'Full resync',
    role: 'operator',
    call: (fields) => post(`${ofCompany(fields)}/sync`, { mode: 'full' }),
    done: 'A full resync was asked for: everything is read anew.',
  },
  'company.verify': {
    label: 'Verify',
    role: 'operator',
    call: (fields) => post(`${ofCompany(fields)}/verify`),
    done: 'The service is read a second time and compared with the mirror, which stays as it is. The run stands at the top of the runs.',
  },
  'company.pause': {
    label: 'Pause',
    role: 'operator',
    call: (fields) => post(`${ofCompany(fields)}/pause`),
    done: 'The company is paused: it is not synced until it is resumed.',
  },
  'company.resume': {
    label: 'Resume',
    role: 'operator',
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
    done: 'The person was forgotten, and is kept out of every sync to come.',
  },
  'record.lift': {
    label: 'Let in again',
    role: 'admin',
    call: ({ resource, id, ...fields }) => post(`${ofCompany(fields)}/forget/lift`, { resource, id }),
    done: 'The next sync writes the record again, if the service still has it.',
  },
  'company.link': {
    label: 'Connect link',
    role: 'operator',
    call: (fields) => post(`${ofCompany(fields)}/connect-link`),
    done: 'The link was made.',
  },
  'connect_link.create': {
    label: 'Make a link',
    role: 'operator',
    tone: 'main',
    call: ({ environment, company_id }) => post('/api/connect-links', { environment, ...(company_id && { company_id }) }),
    done: 'The link was made.',
  },
  'connect_links.create': {
    label: 'Make the links',
    role: 'operator',
    tone: 'main',
    call: ({ environment, cursor }) => post('/api/connect-links/reauthorization', { environment, ...(cursor && { cursor }) }),
    done: 'The links were made.',
  },
  'held_tokens.release': {
    label: 'Release the tokens',
    role: 'operator',
    call: ({ environment }) => post('/api/held-tokens/release', { ...(environment && { environment }) }),
    done: 'Tokens are refreshed again: one at a time, until ten in a row were granted.',
  },
  'companies.failed': {
    label: 'Sync what failed',
    role: 'operator',
    call: ({ environment }) => post('/api/syncs', { status: 'failed', ...(environment && { environment }) }),
    done: 'A sync was asked for of every company whose last run failed.',
  },
  'companies.sync': {
    label: 'Sync all',
    role: 'operator',
    call: ({ environment }) => post('/api/syncs', { ...(environment && { environment }) }),
    done: 'A sync was asked for of every active company.',
  },
  'run.cancel': {
    label: 'Cancel',
    role: 'operator',
    tone: 'danger',
    call: ({ id }) => post(`/api/runs/${part(id)}/cancel`),
    done: 'The run is being cancelled: it stops before its next page.',
  },
  'hold.approve': {
    label: 'Approve',
    role: 'operator',
    tone: 'danger',
    call: ({ id, reason }) => post(`/api/holds/${part(id)}/approve`, reason ? { reason } : undefined),
    done: 'Approved: what the newest verified walk lacked is marked deleted.',
  },
  'holds.approve_grants': {
    label: 'Approve all of cause grant',
    role: 'operator',
    tone: 'danger',
    call: ({ environment, reason }) => post('/api/holds/approve', { environment, cause: 'grant', ...(reason && { reason }) }),
    done: 'Approved, 200 at most at once: what other grants are not shown is marked deleted. Holds whose list is being walked are still here.',
  },
  'hold.reject': {
    label: 'Reject',
    role: 'operator',
    call: ({ id, reason }) => post(`/api/holds/${part(id)}/reject`, reason ? { reason } : undefined),
    done: 'Rejected: the rows stay.',
  },
  'schema.rebuild': {
    label: 'Count anew',
    role: 'operator',
    call: ({ resource }) => post('/api/schema/rebuild', { ...(resource && { resource }) }),
    done: 'A worker counts the columns anew. Their names and types stay.',
  },
  'notification.redeliver': {
    label: 'Send again',
    role: 'operator',
    call: ({ id }) => post(`/api/notifications/${part(id)}/redeliver`),
    done: 'The notification is sent once more.',
  },
  'notifications.redeliver': {
    label: 'Send all again',
    role: 'operator',
    call: ({ environment }) => post('/api/notifications/redeliver', environment ? { environment } : undefined),
    done: 'All notifications that were not delivered are sent once more.',
  },
  'notification.test': {
    label: 'Send a test',
    role: 'operator',
    call: ({ environment }) => post('/api/notifications/test', environment ? { environment } : undefined),
    done: 'A test is sent: it stands at the top, and says what becomes of it.',
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
    done: 'The token was withdrawn: it opens nothing any more, and its sessions have ended.',
  },
} as const satisfies Record<string, Action>;

export type ActionName = keyof typeof ACTIONS;

export function findAction(name: string): Action | undefined {
  return Object.hasOwn(ACTIONS, name) ? ACTIONS[name as ActionName] : undefined;
}
