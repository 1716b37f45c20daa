import type { Environment } from '../../core/company.js';
import type { ErrorCode } from '../../core/errors.js';
import type { IssueState } from '../../db/tables/issues.js';

/** A call of this API. */
export interface IssueAction {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: Readonly<Record<string, string>>;
}

interface Advice {
  /** What is wrong, for the heading of a page. */
  readonly title: string;
  /** What to do, in plain sentences. */
  readonly text: string;
  /** With what to go about it for all companies: a POST goes about it, a GET lists what a person decides one by one. */
  readonly action: (environment: Environment) => IssueAction;
}

const retryFailed = (environment: Environment): IssueAction => ({
  method: 'POST',
  path: '/api/syncs',
  body: { status: 'failed', environment },
});
const look =
  (path: string) =>
  (environment: Environment): IssueAction => ({
    method: 'GET',
    path: `${path}environment=${environment}`,
  });

const OF_STATES: Readonly<Record<IssueState, Advice>> = {
  reauthorization_required: {
    title: 'Companies must authorize again',
    text: 'Make the links, and send each to the administrator of its company. Nothing more is fetched for a company until its link was followed.',
    action: (environment) => ({ method: 'POST', path: '/api/connect-links/reauthorization', body: { environment } }),
  },
  deletions_held: {
    title: 'Deletions wait for a decision',
    text: 'Rows of a list would be deleted, and a person must decide: too many at once, or rows that the person who authorized last is not shown. Look at the sample of each hold, then approve it, or reject it to keep the rows.',
    action: look('/api/holds?status=open&'),
  },
  budget_short: {
    title: 'The night will not end before the next one begins',
    text: 'At their present pace the runs take longer than there is time. Raise REQUESTS_PER_SECOND and REQUESTS_AT_ONCE of this environment if the service allows it, start more workers, or have fewer nights in SYNC_CRON.',
    action: () => ({ method: 'GET', path: '/api/budget' }),
  },
  list_late: {
    title: 'Lists were not proved complete for too long',
    text: 'See first that workers are alive and whether other issues of these companies say why. Then sync them: the issue ends with the next proof.',
    action: (environment) => ({ method: 'POST', path: '/api/syncs', body: { environment } }),
  },
  list_unverified: {
    title: 'Lists are read to their end, and cannot be proved complete',
    text: 'The unverified_reason of the newest walk of each list says what is missing for a proof. The mirror has what was received, but nothing is deleted from it.',
    action: look('/api/runs?'),
  },
  token_quarantined: {
    title: 'Refresh tokens belong to no onboarded company',
    text: 'Each may be the only way back to its company. The reason of each says whether to onboard that company or to delete the token.',
    action: look('/api/quarantined-tokens?'),
  },
  schema_misfit: {
    title: 'Values do not fit the columns of the typed view',
    text: 'The service sends values of another kind than before. They are null in their column and stand in the text column beside it. See which columns have misfits, and read both in your queries. The issue ends a week after the last such value, or when the log is rebuilt and there is none.',
    action: () => ({ method: 'GET', path: '/api/schema' }),
  },
  export_failed: {
    title: 'Nights are not exported',
    text: 'The problem of last_export in the overview, and the log of the workers, say what is wrong with EXPORT_TO: see that it is there, has room, and lets the workers write. It is tried again by itself, within half an hour; after some eight hours the next night is exported instead. The issue ends with the next file.',
    action: look('/api/overview?'),
  },
  privacy_rewrite_pending: {
    title: 'Changed privacy rules are being applied',
    text: 'What is stored of these lists is made to follow the rules of the catalogue, then each list is walked once more. Start every worker with the same catalogue, and sync these companies if you do not want to wait for the night: the issue ends with the last list.',
    action: (environment) => ({ method: 'POST', path: '/api/syncs', body: { environment } }),
  },
  privacy_rule_unmatched: {
    title: 'Privacy rules find nothing',
    text: 'A list was read to its end, and no record had the member of a rule. See whether the path in the catalogue is spelt as the records spell it, and whether the service has renamed the member: then its values are stored as they come. The issue ends with a walk in which each rule finds something.',
    action: () => ({ method: 'GET', path: '/api/schema' }),
  },
  database_copied: {
    title: 'This database was restored or copied',
    text: 'Its tokens may be those of another Muster that runs, so nothing is asked of the service. Where this is the installation from now on, run muster adopt (after a planned move in which nothing was lost, with --feed same); where it is a copy beside it, muster detach, which deletes its tokens.',
    action: look('/api/companies?'),
  },
  tokens_held: {
    title: 'Tokens are not refreshed',
    text: 'The service refused one refresh token after the other, so the others may have been spent elsewhere, and are kept. Where a backup was restored, run muster restore-tokens with the files of TOKEN_JOURNAL of every host. Where another Muster has the same database, stop one of the two. Then release the tokens; else one of them is tried every five minutes, and the issue ends once two were granted.',
    action: (environment) => ({ method: 'POST', path: '/api/held-tokens/release', body: { environment } }),
  },
  token_put_off: {
    title: 'Tokens could not be refreshed',
    text: 'The companies stay authorized, and go on for as long as their access tokens last. Each refresh is tried again by itself, at last each hour; asking for the sync of a company tries at once. Where the answer blames the client, check client id, client secret and auth URL of the environment; else ask the operator of the service what its answer means. The issue ends once tokens are granted.',
    action: retryFailed,
  },
  many_keys: {
    title: 'Records have more keys than a view has columns',
    text: 'Keys that came later have no column: their values stand in the column _rest of the view, and in data. Mostly a member holds others that are called by ids; read it from _rest. The issue ends a week after the last such record.',
    action: () => ({ method: 'GET', path: '/api/schema' }),
  },
  no_worker: {
    title: 'No worker lives',
    text: 'Nothing is fetched and no token is refreshed until a worker lives again. Start one (muster worker), or see in the log why those that there were have ended. One that is there and does not say that it lives may be frozen or cut off from the database: end it and start it again. The issue ends by itself.',
    action: look('/api/overview?'),
  },
  queue_stopped: {
    title: 'The queue was stopped',
    text: 'A queue was paused, or what BullMQ knows of it was removed. Muster has set it going again, and what was lost comes back from the database. Find out who pauses or empties it: Muster needs a Redis database, or the schema bullmq of PostgreSQL, that nobody else writes. The issue ends ten minutes after the last time.',
    action: () => ({ method: 'GET', path: '/api/queue' }),
  },
  webhook_failing: {
    title: 'The webhook takes nothing',
    text: 'Notifications are not delivered, so that nobody is told of anything. See the receiver of NOTIFY_WEBHOOK_URL and its log; the list of notifications says how each attempt ended. Then send all again. The issue ends with the first delivery that is taken.',
    action: (environment) => ({ method: 'POST', path: '/api/notifications/redeliver', body: { environment } }),
  },
  never_proved: {
    title: 'Lists were never proved complete',
    text: 'These lists have never worked, so nothing of them should be relied on: a walk rejected all of their records, or none was proved within STALE_AFTER_HOURS of the first one. See the unverified_reason of their newest walks and the rejected records, mend the entry in the catalogue (mostly id, pager or envelope) or have the service mend the list, then sync again. The issue ends with the first proof.',
    action: (environment) => ({ method: 'POST', path: '/api/syncs', body: { environment } }),
  },
  list_unavailable: {
    title: 'No company has this list',
    text: 'The catalogue calls the list optional, and the service refuses it for every company of this environment, two at least. Where some should have it, see what the service says on the page of a company, then check the path of the list in the catalogue and the roles of the application. Else take the list out of the catalogue. The issue ends once one company has it.',
    action: look('/api/companies?state=unavailable&'),
  },
  mirror_differs: {
    title: 'The mirror differs from what was received',
    text: 'A second reading found rows that are missing, that nobody received, or that hold another text than was received: somebody has written to the mirror, or it was restored. The run of trigger verify or nightly_verify has samples. Find out who writes there, then ask for a full resync of these companies, which compares every record, and verify again: the issue ends once nothing is found.',
    action: look('/api/runs?trigger=nightly_verify&'),
  },
};

const CHECK_CATALOGUE = 'Check how the entry of this list in the catalogue names its paging and its envelope, then sync again.';
const PASSES =
  'It may pass by itself: the next night tries again. If it lasts, ask the operator of the service, then sync again.';

const OF_ERRORS: Readonly<Partial<Record<ErrorCode, string>>> = {
  service_unreachable:
    'Check the BASE_URL and AUTH_URL of this environment, DNS, proxies, firewalls and certificates, then sync again.',
  service_timeout:
    'If the service is always slow, raise REQUEST_TIMEOUT_SECONDS, or lower the size of this list, then sync again.',
  service_error: PASSES,
  service_throttled: 'Lower REQUESTS_PER_SECOND of this environment or WORKER_CONCURRENCY if it lasts, then sync again.',
  service_refused: "Check the path of this list in the catalogue and the application's roles at the service, then sync again.",
  response_too_large: 'Lower the size of this list in the catalogue, or raise ANSWER_MEMORY_MB, then sync again.',
  worker_died:
    'See in the log of the workers and of their container why they ended. Mostly memory was short: give them more, or lower the size of this list or ANSWER_MEMORY_MB, then sync again.',
  malformed_response: 'Check that BASE_URL of this environment is the API itself and not a page before it, then sync again.',
  malformed_envelope: CHECK_CATALOGUE,
  contradicting_envelope: CHECK_CATALOGUE,
  success_denied: PASSES,
  pager_misdeclared: CHECK_CATALOGUE,
  page_token_loop: CHECK_CATALOGUE,
  page_token_expired:
    'A larger size of this list makes its walk shorter. If no second page ever came, check its pager, then sync again.',
  walk_limit_exceeded:
    'The list changes faster than it is read, or does not end: check its pager, and try a larger size, then sync again.',
  environment_not_configured: 'Set the variables of this environment for the workers, restart them, then sync again.',
  rekey_required: "Put the member back that the list's records are kept by, or rekey the list of each company, then sync again.",
  token_unreadable:
    'Give the missing key back to MUSTER_ENCRYPTION_KEYS and restart, then sync again. If it is lost, have the companies authorize again.',
  token_not_stored: 'See that the database takes writes, then sync again.',
  database_unavailable: 'See that PostgreSQL runs and has connections left, then sync again.',
  statement_cancelled:
    'Lift the limit that cancels statements: ALTER ROLE … SET statement_timeout = 0 for the role of Muster, then sync again.',
  database_full: 'Make room on the disk of PostgreSQL, or give it a larger one, then sync again.',
  database_failing: 'Look at the log of PostgreSQL: it is out of memory, or a file of it fails. Mend that, then sync again.',
  internal_error: 'Something failed that should not have: look at the log of the workers and report it, then sync again.',
};

/** The part of the guide for errors without advice of their own. */
const OTHER = 'other';
const OF_OTHERS = 'Look at the error of the newest run of each company, do what it says, then sync again.';

/** What to do about a cause, and where in the guide it stands. */
export function adviceOf(cause: string): Advice & { readonly anchor: string } {
  const state = OF_STATES[cause as IssueState] as Advice | undefined;
  if (state) return { ...state, anchor: cause };
  const text = OF_ERRORS[cause as ErrorCode];
  const title = `Lists cannot be walked: ${text === undefined ? 'another error' : cause.replaceAll('_', ' ')}`;
  return { title, text: text ?? OF_OTHERS, action: retryFailed, anchor: text === undefined ? OTHER : cause };
}

/** Every anchor of the guide, in its order. */
export const ISSUE_ANCHORS: readonly string[] = [...Object.keys(OF_STATES), ...Object.keys(OF_ERRORS), OTHER];
