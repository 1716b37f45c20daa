import { ADVICE, adviceFor } from './advice.js';
import type { Environment } from './company.js';
import { ERROR_CODES, type ErrorCode } from './errors.js';

/** A call of the admin API. */
export interface IssueAction {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: Readonly<Record<string, string>>;
}

/** A cause of issues. An issue is one cause, in an environment, of a list or of whole companies. */
export interface IssueCause {
  /** `action`: it stays until a person acts. `warning`: it may pass. */
  readonly severity: 'action' | 'warning';
  /** The fault in words, for the heading of a page. */
  readonly title: string;
  /** Says what to do, in plain sentences. */
  readonly advice: string;
  /** Deals with the companies and the list of the issue: a POST does so, a GET lists what a person decides one by one. */
  readonly action: (issue: IssueKey) => IssueAction;
}

export interface IssueKey {
  readonly id: string;
  readonly environment: Environment;
}

const post =
  (path: string) =>
  ({ environment }: IssueKey): IssueAction => ({ method: 'POST', path, body: { environment } });
const look =
  (path: string) =>
  ({ environment }: IssueKey): IssueAction => ({ method: 'GET', path: `${path}environment=${environment}` });
const syncThem = ({ id }: IssueKey): IssueAction => ({ method: 'POST', path: '/api/syncs', body: { issue_id: id } });

/** The causes that are not codes of errors with which walks fail. A sweep finds them (db/tables/issues.ts). Their names are public: rename none. */
const STATES = {
  reauthorization_required: {
    severity: 'action',
    title: 'Companies must authorize again',
    advice: ADVICE.reauthorization_required,
    action: post('/api/connect-links/reauthorization'),
  },
  deletions_held: {
    severity: 'action',
    title: 'Deletions wait for a decision',
    advice:
      'Rows of a list would be deleted, and a person must decide: too many at once, or rows that the person who authorized last is not shown. Look at the sample of each hold, then approve it, or reject it to keep the rows.',
    action: look('/api/holds?status=open&'),
  },
  budget_short: {
    severity: 'action',
    title: 'The night will not end before the next one begins',
    advice:
      'At their present pace the runs take longer than there is time. Raise REQUESTS_PER_SECOND and REQUESTS_AT_ONCE of this environment if the service allows it, start more workers, or have fewer nights in SYNC_CRON.',
    action: () => ({ method: 'GET', path: '/api/budget' }),
  },
  list_late: {
    severity: 'warning',
    title: 'Lists were not proved complete for too long',
    advice:
      'See first that workers are alive and whether other issues of these companies say why. Then sync them: the issue ends with the next proof.',
    action: syncThem,
  },
  list_unverified: {
    severity: 'warning',
    title: 'Lists are read to their end, and cannot be proved complete',
    advice:
      'The unverified_reason of the newest walk of each list says what is missing for a proof. The mirror has what was received, but nothing is deleted from it.',
    action: look('/api/runs?'),
  },
  token_quarantined: {
    severity: 'warning',
    title: 'Refresh tokens belong to no onboarded company',
    advice:
      'Each may be the only way back to its company. The reason of each says whether to onboard that company or to delete the token.',
    action: look('/api/quarantined-tokens?'),
  },
  schema_misfit: {
    severity: 'warning',
    title: 'Values do not fit the columns of the typed view',
    advice:
      'The service sends values of another kind than before. They are null in their column and the text column next to it has them. See which columns have misfits, and read both in your queries. The issue ends a week after the last such value, or when the log is rebuilt and there is none.',
    action: () => ({ method: 'GET', path: '/api/schema' }),
  },
  export_failed: {
    severity: 'action',
    title: 'Nights are not exported',
    advice:
      'The problem of last_export in the overview, and the log of the workers, say what is wrong with EXPORT_TO: see that it is there, has room, and lets the workers write. It is tried again by itself, within half an hour; after some eight hours the next night is exported instead. The issue ends with the next file.',
    action: look('/api/overview?'),
  },
  privacy_rewrite_pending: {
    severity: 'warning',
    title: 'Changed privacy rules are being applied',
    advice:
      'What is stored of these lists is made to follow the rules of the catalogue, then each list is walked once more. Start every worker with the same catalogue, and sync these companies if you do not want to wait for the night: the issue ends with the last list.',
    action: syncThem,
  },
  privacy_rule_unmatched: {
    severity: 'warning',
    title: 'Privacy rules find nothing',
    advice:
      'A list was read to its end, and no record had the member of a rule. See whether the path in the catalogue is spelt as the records spell it, and whether the service has renamed the member: then its values are stored as they come. The issue ends with a walk in which each rule finds something.',
    action: () => ({ method: 'GET', path: '/api/schema' }),
  },
  database_copied: {
    severity: 'action',
    title: 'This database was restored or copied',
    advice: `Its tokens may be those of another Muster that runs, so nothing is asked of the service. ${ADVICE.database_copied}`,
    action: look('/api/companies?'),
  },
  tokens_held: {
    severity: 'action',
    title: 'Tokens are not refreshed',
    advice: `The service refused one refresh token after the other, so the others may have been spent elsewhere, and are kept. ${ADVICE.tokens_held}`,
    action: post('/api/held-tokens/release'),
  },
  token_put_off: {
    severity: 'warning',
    title: 'Tokens could not be refreshed',
    advice:
      'The companies stay authorized, and go on for as long as their access tokens last. Each refresh is tried again by itself, at last each hour; asking for the sync of a company tries at once. Where the answer blames the client, check client id, client secret and auth URL of the environment; else ask the operator of the service what its answer means. The issue ends once tokens are granted.',
    action: syncThem,
  },
  many_keys: {
    severity: 'warning',
    title: 'A view has nearly as many columns as it can have, or no room for more',
    advice:
      'A view has 750 columns of keys at most, and the issue opens at 675. Flatten fewer levels (flatten in the catalogue), or declare an object that brings many keys as jsonb: then it takes one column. Columns that are there stay. Keys without a column are in the column _rest of the view, and in data; arrays beyond the first 50 with objects have no view of their own, but the column of the array. Where there was no room, the issue ends a week after the last such record.',
    action: () => ({ method: 'GET', path: '/api/schema' }),
  },
  no_worker: {
    severity: 'action',
    title: 'No worker lives',
    advice: `Nothing is fetched and no token is refreshed until a worker lives again. ${ADVICE.no_worker} The issue ends by itself.`,
    action: look('/api/overview?'),
  },
  queue_stopped: {
    severity: 'warning',
    title: 'The queue was stopped',
    advice:
      'A queue was paused, or what BullMQ knows of it was removed. Muster has set it going again, and what was lost comes back from the database. Find out who pauses or empties it: Muster needs a Redis database, or the schema bullmq of PostgreSQL, that no other program writes. The issue ends ten minutes after the last time.',
    action: () => ({ method: 'GET', path: '/api/queue' }),
  },
  webhook_failing: {
    severity: 'action',
    title: 'The webhook takes nothing',
    advice:
      'Notifications are not delivered, so no person learns of trouble. See the receiver of NOTIFY_WEBHOOK_URL and its log; the list of notifications says how each attempt ended. Then send all again. The issue ends with the first delivery that is taken.',
    action: post('/api/notifications/redeliver'),
  },
  never_proved: {
    severity: 'action',
    title: 'Lists were never proved complete',
    advice:
      'These lists have never worked, so nothing of them should be relied on: a walk rejected all of their records, or none was proved within STALE_AFTER_HOURS of the first one. See the unverified_reason of their newest walks and the rejected records, mend the entry in the catalogue (mostly id, pager or envelope) or have the service mend the list, then sync again. The issue ends with the first proof.',
    action: syncThem,
  },
  list_unavailable: {
    severity: 'warning',
    title: 'No company has this list',
    advice:
      'The catalogue calls the list optional, and the service refuses it for every company of this environment, two at least. Where some should have it, see what the service says on the page of a company, then check the path of the list in the catalogue and the roles of the application. Else take the list out of the catalogue. The issue ends once one company has it.',
    action: look('/api/companies?state=unavailable&'),
  },
  mirror_differs: {
    severity: 'action',
    title: 'The mirror differs from what was received',
    advice:
      'A second reading found rows that are missing, that no walk received, or that hold another text than was received: another program has written to the mirror, or it was restored. The run of trigger verify or nightly_verify has samples. Find out who writes there, then ask for a full resync of these companies, which compares every record, and verify again: the issue ends once nothing is found.',
    action: look('/api/runs?trigger=nightly_verify&'),
  },
} satisfies Record<string, IssueCause>;

export type IssueState = keyof typeof STATES;
export const ISSUE_STATES: Readonly<Record<IssueState, IssueCause>> = STATES;

/** Codes with which walks fail have a part of the guide, and so have the states. One part is for every other code. */
const OTHER = 'other';
const isOfWalks = (code: ErrorCode) =>
  ERROR_CODES[code].status >= 500 || code === 'rekey_required' || code === 'environment_not_configured';

/** Looks a cause up. `anchor` is its part of the guide. */
export function causeOf(cause: string): Omit<IssueCause, 'severity'> & { readonly anchor: string } {
  if (Object.hasOwn(ISSUE_STATES, cause)) return { ...ISSUE_STATES[cause as IssueState], anchor: cause };
  const isKnown = Object.hasOwn(ERROR_CODES, cause) && isOfWalks(cause as ErrorCode);
  return {
    title: `Lists cannot be walked: ${isKnown ? cause.replaceAll('_', ' ') : 'another error'}`,
    advice: `${(isKnown && adviceFor(cause)) || 'Look at the error of the newest run of each company, and do what it says.'} Then sync again.`,
    action: syncThem,
    anchor: isKnown ? cause : OTHER,
  };
}

/** Every anchor of the guide, in its order. */
export const ISSUE_ANCHORS: readonly string[] = [
  ...Object.keys(ISSUE_STATES),
  ...Object.keys(ERROR_CODES).filter((code) => isOfWalks(code as ErrorCode) && !Object.hasOwn(ISSUE_STATES, code)),
  OTHER,
];
