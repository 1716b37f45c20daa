import type { ApiCall } from '../../api/plumbing/in-process-api.js';
import type { Role } from '../../db/tables/named-tokens.js';
import { numberText } from './shown-values.js';

type Fields = Readonly<Record<string, string>>;

/** An action that a person can do on a page, and its call of the API. */
export interface Action {
  /** The accessible name of its button. It says how many companies the button reaches, where the fields tell. */
  readonly label: string | ((fields: Fields) => string);
  /** The role that may do it: an operator, if unset. Other people do not see the button. */
  readonly role?: Role;
  readonly call: (fields: Fields) => ApiCall;
  /** The page that asks first, and its part of the API, where the action reaches more than MOST_UNASKED companies. */
  readonly askedAt?: (fields: Fields) => { readonly page: string; readonly preview: ApiCall['path'] };
  /** The message after the action. */
  readonly done: string;
  readonly tone?: 'main' | 'danger';
}

const part = (text: string | undefined) => encodeURIComponent(text ?? '');
export const ofCompany = ({ environment, company_id }: Fields) => `/api/companies/${part(environment)}/${part(company_id)}`;
const post = (path: string, body?: unknown): ApiCall => ({ method: 'POST', path, ...(body !== undefined && { body }) });

/** An action that reaches more companies than this asks first: a person who reads names of companies sees these at a glance. */
export const MOST_UNASKED = 20;

function askAt(filter: Readonly<Record<string, string | undefined>>) {
  const query = new URLSearchParams(Object.entries(filter).flatMap(([name, value]) => (value ? [[name, value]] : []))).toString();
  return { page: `/syncs?${query}`, preview: `/api/syncs?${query}` } as const;
}

function syncTheseText(count: string | undefined): string {
  if (count === '1') return 'Sync this company';
  return count === undefined ? 'Sync these' : `Sync these ${numberText(Number(count))}`;
}
/** The time in so many days; an invalid time where the form gave no number, so that the API refuses it. */
const inDays = (days: number) => (Number.isFinite(days) ? new Date(Date.now() + days * 86_400_000).toISOString() : '');

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
  'company.quiet_hours': {
    label: 'Set quiet hours',
    tone: 'main',
    call: ({ quiet_hours, ...fields }) => post(`${ofCompany(fields)}/quiet-hours`, { quiet_hours: quiet_hours?.trim() || null }),
    done: 'The quiet hours were set. What waits for the former ones follows at once.',
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
    call: ({ environment, cursor }) =>
      post('/api/connect-links/reauthorization', { ...(environment && { environment }), ...(cursor && { cursor }) }),
    done: 'The links were made.',
  },
  'held_tokens.release': {
    label: 'Release the tokens',
    call: ({ environment }) => post('/api/held-tokens/release', { ...(environment && { environment }) }),
    done: 'Muster refreshes tokens again: one at a time, until ten in a row were granted.',
  },
  'issue.sync': {
    label: ({ count }) => syncTheseText(count),
    tone: 'main',
    call: ({ issue_id }) => post('/api/syncs', { issue_id }),
    askedAt: ({ issue_id }) => askAt({ issue_id }),
    done: 'A sync was requested for the companies of this issue, of its list. Issues end with the next walks.',
  },
  'companies.sync': {
    label: ({ count }) => syncTheseText(count),
    tone: 'main',
    call: ({ status, environment }) => post('/api/syncs', { ...(status && { status }), ...(environment && { environment }) }),
    askedAt: ({ status, environment }) => askAt({ status, environment }),
    done: 'A sync was requested for these companies. Their runs are at the top of the runs.',
  },
  'run.retry': {
    label: 'Retry',
    tone: 'main',
    call: ({ kind, resources, ...fields }) =>
      post(
        `${ofCompany(fields)}/${kind === 'verify' ? 'verify' : 'sync'}`,
        resources ? { resources: resources.split(',') } : undefined,
      ),
    done: 'These lists are tried again by this run.',
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
    call: ({ id, run_id, reason }) => {
      const body = { ...(reason && { reason }), ...(run_id && { run_id }) };
      return post(`/api/holds/${part(id)}/approve`, reason || run_id ? body : undefined);
    },
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
  'issue.snooze': {
    label: 'Snooze',
    call: ({ id, days, reason }) => post(`/api/issues/${part(id)}/snooze`, { until: inDays(Number(days)), reason }),
    done: 'The issue is snoozed: it is out of the overview until then, or until it grows.',
  },
  'issue.unsnooze': {
    label: 'End the snooze',
    call: ({ id }) => post(`/api/issues/${part(id)}/unsnooze`),
    done: 'The issue is on the overview again.',
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

/** The accessible name of the action's button. */
export function labelOf({ label }: Action, fields: Fields): string {
  return typeof label === 'string' ? label : label(fields);
}

export function findAction(name: string): Action | undefined {
  return Object.hasOwn(ACTIONS, name) ? ACTIONS[name as ActionName] : undefined;
}
