import type { ErrorCode } from './errors.js';

/** Reasons for which a company must authorize again that are not codes of errors. */
type ReauthorizationReason = 'refresh_outcome_unknown' | 'detached' | 'removed_after_backup';

const AUTHORIZE = "Send the company's administrator a connect link: until it was followed, nothing is fetched for the company.";
const CHECK_PAGER =
  'Check how the entry of this list in the catalogue names its paging and its envelope: pager, envelope, fields.';
const MAY_PASS = 'Nothing at first: Muster tries again. If it lasts, ask the operator of the service.';
const DO_AS_TOLD = 'Do what the message says.';

/**
 * Advice for people on each error, in plain sentences, by its code. Issues, pages, the doctor and docs/errors.md take it from here; after an edit,
 * `npm run generate:docs` writes it into that document.
 */
export const ADVICE: Readonly<Record<ErrorCode | ReauthorizationReason, string>> = {
  invalid_configuration: 'Correct the settings that the message names, and start again.',
  invalid_catalogue: 'Correct the entries that the message names, and start again.',
  invalid_request: 'Correct the request, and send it again: /api/docs shows what each call takes.',
  unauthorized:
    'Send `Authorization: Bearer <token>` with a named token that is neither deleted nor expired, with the token of MUSTER_ADMIN_TOKEN, or with that of the file admin-token under MUSTER_HOME.',
  forbidden: 'Use a token with a higher role, or ask an administrator; an admin makes one by `muster tokens add`.',
  not_found: 'See /api/docs for the addresses that there are.',
  company_not_found: 'Check the environment and the company_id; onboard the company if it is new.',
  run_not_found: 'See GET /api/runs for the runs that there are.',
  hold_not_found: 'See GET /api/holds for the holds that there are.',
  certificate_not_found:
    'See GET /api/certificates for the certificates that there are. Old ones are removed with the audit (AUDIT_RETENTION_DAYS).',
  notification_not_found: 'See GET /api/notifications for the notifications that there are.',
  issue_not_found: 'See GET /api/issues for the issues that there are.',
  issue_resolved: 'There is nothing to do: the trouble is over. GET /api/issues?status=ongoing lists what is left.',
  quarantined_token_not_found: 'See GET /api/quarantined-tokens for the tokens that there are.',
  token_not_found: 'See GET /api/tokens for the tokens that there are.',
  token_name_taken: 'Choose another name, or delete that token first.',
  webhook_not_configured: 'Set NOTIFY_WEBHOOK_URL and NOTIFY_WEBHOOK_SECRET for the API and the workers, and restart them.',
  changes_expired: "Read the mirror's tables again, then go on with the `after` that `go_on_after` gives.",
  feed_restarted:
    "Read the mirror's tables again, then go on with the `after` and the `feed` that `go_on_after` and `feed` give.",
  idempotency_key_reused: 'Make a new key for each call.',
  idempotency_key_in_use: 'Send the same again after `Retry-After` seconds: you are given the first answer.',
  environment_not_configured: 'Set BASE_URL, AUTH_URL, CLIENT_ID and CLIENT_SECRET of this environment, and restart.',
  unknown_resource: 'Use a list that the catalogue has, or add this one to it.',
  lists_unproved: 'See the issues `never_proved` and `list_late`, and sync the lists; or export without requiring proofs.',
  database_copied:
    'Where this is the installation from now on, run `muster adopt` (after a planned move in which nothing was lost, with `--feed same`); where it is a copy, run `muster detach`, which deletes its tokens.',
  installation_detached:
    'Use the installation itself. To make the copy an installation of its own, run `muster adopt`, and have its companies authorize.',
  already_onboarded: 'Nothing. To replace a token that works, have the company authorize again by a connect link.',
  onboarding_in_progress: 'Look at the company in a moment. If it is not onboarded then, onboard it again.',
  company_paused: 'Resume the company first.',
  reauthorization_required: AUTHORIZE,
  grant_changed: 'Nothing: the next attempt reads the list from its start.',
  invalid_quiet_hours: 'Correct the windows that the message names, and send them again.',
  quiet_hours:
    'Nothing: Muster goes on at the time that the message names. To have it go on now, change the quiet hours of the company.',
  token_refused: `${AUTHORIZE} If new tokens are refused, too, check CLIENT_ID and CLIENT_SECRET of this environment.`,
  refresh_outcome_unknown: AUTHORIZE,
  token_for_another_company: `${AUTHORIZE} To onboard the other company, use a token of it.`,
  token_unreadable:
    'Give the missing key back to MUSTER_ENCRYPTION_KEYS, and restart. If it is lost, have the companies authorize again.',
  answer_unreadable:
    'Look at what the first call did. Give the key that the message names back to MUSTER_ENCRYPTION_KEYS if you need its answer.',
  mark_key_unreadable: 'Give the encryption key that the message names back to MUSTER_ENCRYPTION_KEYS, and restart.',
  token_busy: 'Nothing: another process refreshes the token. If it lasts, look at the log of that process.',
  token_not_stored:
    'See that the database takes writes. A token in quarantine is used when the same is done again; one in memory is stored as soon as that works, so do not restart the process.',
  tokens_held:
    'Where a backup was restored, run `muster restore-tokens` with the files of TOKEN_JOURNAL of every host. Where another Muster has the same tokens, stop one of the two. Then run `muster release-tokens`; else one token is tried every five minutes, and two that are granted end it.',
  hold_not_open: 'Look at the newest hold of that list.',
  rekey_required:
    'Put the member back into `id` of the list, or `muster rekey` the list of each company: its rows are marked deleted and come back under their new ids.',
  access_token_refused: AUTHORIZE,
  detached: 'Nothing: this database is a copy, and the installation itself goes on.',
  removed_after_backup: 'Remove the company again.',
  service_unreachable: 'Check BASE_URL and AUTH_URL of this environment, DNS, proxies, firewalls and certificates.',
  service_timeout:
    'Nothing at first. If the service is always slow, raise REQUEST_TIMEOUT_SECONDS, or lower the size of this list in the catalogue.',
  service_error: MAY_PASS,
  worker_died:
    'See in the log of the workers and of their container why they ended. Mostly memory was short: give them more, or lower the size of this list or ANSWER_MEMORY_MB.',
  walks_failed: 'See the error of each list.',
  service_throttled:
    'Nothing at first: Muster waits as long as it is told to. If it lasts, lower REQUESTS_PER_SECOND of this environment or WORKER_CONCURRENCY.',
  service_refused:
    "See what the service says (`service_says`). Check the path of this list in the catalogue and the application's roles at the service, or CLIENT_ID and CLIENT_SECRET where it refuses those. A list that some companies do not have is `optional: true`.",
  response_too_large: 'Lower the size of this list in the catalogue, or raise ANSWER_MEMORY_MB.',
  malformed_response:
    'Nothing at first: Muster tries again. If it lasts, check that BASE_URL of this environment is the API itself and not a page before it, and ask the operator of the service or of the proxy.',
  malformed_envelope: CHECK_PAGER,
  contradicting_envelope: `Nothing at first: Muster tries again. If it lasts: ${CHECK_PAGER}`,
  success_denied: `${MAY_PASS} If the member means nothing, name it under fields.ignore of the list.`,
  pager_misdeclared: CHECK_PAGER,
  page_token_loop: `${CHECK_PAGER} If they are right, ask the operator of the service.`,
  page_token_expired:
    'A larger size of this list makes its walk shorter. If no second page ever came, check fields.next and pager.tokenName.',
  walk_limit_exceeded: 'The list changes faster than it is read, or does not end: check its pager, and try a larger size.',
  fenced: 'Nothing: another worker goes on.',
  overloaded:
    'Ask again in a moment (`Retry-After`); follow fewer runs at once, or read with fewer clients or a smaller `limit`.',
  stopping: 'Nothing: the work goes on in another process, or at the next start. Repeat a call of the API in a moment.',
  database_unavailable: 'See that PostgreSQL runs and has connections left, and that DATABASE_URL is right.',
  statement_cancelled:
    'Try again. If it lasts, lift the limit that cancels statements: `ALTER ROLE … SET statement_timeout = 0` for the role of Muster.',
  database_full: 'Make room on the disk of PostgreSQL, or give it a larger one. Then everything goes on by itself.',
  database_failing: 'Look at the log of PostgreSQL, and mend what it says.',
  database_busy: 'Try again in a minute. If it lasts, see in pg_stat_activity which session holds the lock.',
  process_outdated: 'Start the newer version in its place.',
  no_worker:
    'Start a worker (`muster worker`, or `muster up`), or see in the log why those that there were have ended. One that runs and does not say that it lives may be frozen or cut off from the database: end it, and start it again.',
  queue_unavailable:
    'See that Redis runs and that REDIS_URL is right, or PostgreSQL where it is not set. Muster goes on by itself.',
  migration_failed: `${DO_AS_TOLD} \`muster migrate\` shows it again.`,
  embedded_database_failed: `${DO_AS_TOLD} Or set DATABASE_URL to a server of your own.`,
  export_failed: `${DO_AS_TOLD} Make the folder, give the right, or make room.`,
  port_in_use: 'Stop the program that listens there, or set PORT to another port.',
  internal_error: 'Look at the log of Muster, and report it.',
};

/** The advice on a code, where it is known. */
export function adviceFor(code: string): string | undefined {
  return Object.hasOwn(ADVICE, code) ? ADVICE[code as ErrorCode] : undefined;
}
