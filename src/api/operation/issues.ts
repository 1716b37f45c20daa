import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { type CompanyKey, keyText } from '../../core/company.js';
import { MusterError } from '../../core/errors.js';
import { causeOf } from '../../core/issue-causes.js';
import { withoutSlash } from '../../core/own-address.js';
import type { Database } from '../../db/connection/database.js';
import { findCompanyNames } from '../../db/tables/companies.js';
import { listIssueCompanies } from '../../db/tables/issue-companies.js';
import { findIssue, ISSUE_SEVERITIES, ISSUE_STATUSES, type IssueRow, listIssues, setSnooze } from '../../db/tables/issues.js';
import { findListStates, LIST_STATES, type ListWithState } from '../../db/tables/list-states.js';
import { type IssueSearchDependencies, issueSearchOf } from '../../runs/issue-search.js';
import { tokenResponsesOf } from '../companies/token-refusals.js';
import { audited } from '../plumbing/audit.js';
import { CompanyName } from '../plumbing/company-names.js';
import { Count, EnvironmentName, IdParams, listQuery, Moment, pageOf, presentTime, Time } from '../plumbing/models.js';
import { operationsOf } from '../plumbing/operations.js';
import { describeRejected } from '../runs/rejected-members.js';
import { ISSUE_GUIDE_PATH } from './issue-guide.js';

export const IssueStatusName = z.enum(ISSUE_STATUSES);

const Issue = z
  .object({
    id: z.string(),
    cause: z.string().describe('The error code with which lists fail, or a state: docs/admin-api.md lists them.'),
    environment: EnvironmentName,
    resource: z.string().optional().describe('Absent where the cause is of whole companies.'),
    severity: z.enum(ISSUE_SEVERITIES).describe('action: it stays until a person acts. warning: it may pass by itself.'),
    companies: Count.describe('How many have it; of a resolved one, how many had it last.'),
    late: Count.optional().describe(
      'How many of them have a list that is late for this reason: no issue `list_late` counts it. Absent where none has.',
    ),
    first_seen_at: Time,
    last_seen_at: Time,
    status: IssueStatusName,
    resolved_at: Time.optional(),
    snoozed: z
      .object({ until: Time, reason: z.string(), by: z.string() })
      .optional()
      .describe('A person wants to see no more of it until then. Absent for every other issue, and once the time is over.'),
    advice: z
      .string()
      .describe(
        'What to do. Before it, for `never_proved`: why records were rejected, and the names of their members; and `token_answers`, in a sentence.',
      ),
    token_answers: z
      .string()
      .optional()
      .describe(
        'For `token_put_off` and `reauthorization_required`: status and error code that the token endpoint answered, each with the number of companies.',
      ),
    docs_url: z.string().describe('Where this Muster says more.'),
    sample: z.array(z.string()).describe('Some of the company_ids, five at most.'),
    samples: z.array(z.object({ company_id: z.string(), company_name: CompanyName })).describe('The same companies by name.'),
    action: z
      .object({ method: z.enum(['GET', 'POST']), path: z.string(), body: z.record(z.string(), z.string()).readonly().optional() })
      .readonly()
      .describe(
        'For its companies and its list, and no others: a POST acts on them, a GET lists what a person decides one by one.',
      ),
  })
  .meta({ id: 'Issue', description: 'What a person should see: all companies of an environment with the same trouble.' });
export type IssueModel = z.output<typeof Issue>;

const IssueCompany = z
  .object({
    environment: EnvironmentName,
    company_id: z.string(),
    company_name: CompanyName,
    list: z
      .object({
        state: z.enum(LIST_STATES),
        since: Time.nullable(),
        reason: z.string().optional(),
        service_says: z.string().optional(),
        last_verified_at: Time.nullable(),
      })
      .optional()
      .describe('The list of the issue, as GET /api/companies has it. Absent where the issue is of whole companies.'),
  })
  .meta({ id: 'IssueCompany', description: 'A company of an issue.' });
export type IssueCompanyModel = z.output<typeof IssueCompany>;

/** PostgreSQL refuses NUL and lone surrogates, and a reason is one line of a table. */
const ONE_LINE = new RegExp(String.raw`^[^\u0000-\u001f\u007f-\u009f\ud800-\udfff]*$`, 'u');

const Reason = z
  .string()
  .regex(ONE_LINE, 'must be one line')
  .refine((text) => text.trim() !== '' && [...text].length <= 500, 'must be 1 to 500 characters')
  .meta({ minLength: 1, maxLength: 500 })
  .describe('Why, for the others who look and for the audit.');

const DAY_MS = 86_400_000;
const MOST_DAYS = 30;

export interface IssueRoutesDependencies extends IssueSearchDependencies {
  readonly db: Database;
  readonly publicUrl: URL;
}

const { viewer, operator } = operationsOf('issues');

export function issueRoutes(deps: IssueRoutesDependencies): FastifyPluginAsyncZod {
  const { db, publicUrl, staleAfterHours, clock } = deps;
  // Only a process without workers sees that no worker lives; the trouble is looked up as that process finds it.
  const search = issueSearchOf(deps, false);
  const present = async (row: IssueRow): Promise<IssueModel> => (await presentIssues(db, [row], publicUrl))[0]!;

  return async (api) => {
    api.get(
      '/issues',
      viewer('listIssues', 'List the issues, newest first', {
        querystring: listQuery({
          status: IssueStatusName.exactOptional(),
          environment: EnvironmentName.exactOptional(),
          snoozed: z
            .enum(['true', 'false'])
            .exactOptional()
            .describe('Only issues that are snoozed, or only those that are not.'),
        }),
        response: { 200: pageOf(Issue) },
      }),
      async ({ query: { snoozed, ...query } }) => {
        const { data, nextCursor } = await listIssues(db, { ...query, ...(snoozed && { isSnoozed: snoozed === 'true' }) });
        return { data: await presentIssues(db, data, publicUrl), next_cursor: nextCursor ?? null };
      },
    );

    api.get(
      '/issues/:id',
      viewer('showIssue', 'Show an issue', { params: IdParams, response: { 200: Issue }, problems: ['issue_not_found'] }),
      async ({ params: { id } }) => present(await findIssue(db, { id })),
    );

    api.get(
      '/issues/:id/companies',
      viewer('listIssueCompanies', 'List the companies that have the trouble of an issue now, by id', {
        params: IdParams,
        querystring: listQuery({}),
        response: { 200: pageOf(IssueCompany) },
        problems: ['issue_not_found'],
      }),
      async ({ params: { id }, query }) => {
        const issue = await findIssue(db, { id });
        const { data, nextCursor } = await listIssueCompanies(db, issue, { ...search(), ...query });
        return { data: await presentCompanies(issue, data), next_cursor: nextCursor ?? null };
      },
    );

    api.post(
      '/issues/:id/snooze',
      operator('snoozeIssue', 'Snooze an issue', {
        description: `The issue stays ongoing, and is out of the overview and of issues_open until then, ${MOST_DAYS} days at most. It comes back sooner when it has ten times the companies, or needs a person where it was a warning.`,
        params: IdParams,
        body: z.strictObject({ until: Moment, reason: Reason }),
        response: { 200: Issue },
        problems: ['issue_not_found', 'issue_resolved'],
      }),
      async ({ caller, params: { id }, body: { until, reason } }) => {
        const left = until.getTime() - clock.now();
        if (left <= 0 || left > MOST_DAYS * DAY_MS)
          throw new MusterError('invalid_request', `\`until\` must be in the future, and ${MOST_DAYS} days ahead at most.`);
        const { cause, environment, resource } = await findIssue(db, { id });
        const details = { issue_id: id, cause, ...(resource && { resource }), until: until.toISOString(), reason };
        const snooze = { until, reason, by: caller.name };
        return present(
          await audited(db, { by: caller, action: 'issue.snooze', environment, details }, () => setSnooze(db, id, snooze)),
        );
      },
    );

    api.post(
      '/issues/:id/unsnooze',
      operator('unsnoozeIssue', 'End the snooze of an issue', {
        params: IdParams,
        response: { 200: Issue },
        problems: ['issue_not_found', 'issue_resolved'],
      }),
      async ({ caller, params: { id } }) => {
        const { cause, environment, resource } = await findIssue(db, { id });
        const details = { issue_id: id, cause, ...(resource && { resource }) };
        return present(
          await audited(db, { by: caller, action: 'issue.unsnooze', environment, details }, () => setSnooze(db, id, undefined)),
        );
      },
    );
  };

  async function presentCompanies(
    { environment, resource }: IssueRow,
    keys: readonly CompanyKey[],
  ): Promise<IssueCompanyModel[]> {
    const companyIds = keys.map(({ companyId }) => companyId);
    const resources = resource === null ? [] : [resource];
    const [names, lists] = await Promise.all([
      findCompanyNames(db, keys),
      resource === null ? [] : findListStates(db, { companyIds, resources, staleAfterHours }),
    ]);
    const listOf = new Map(lists.map((list) => [keyText(list), list]));
    return keys.map((key) => {
      const [name, list] = [names.get(keyText(key)), listOf.get(keyText(key))];
      return {
        environment,
        company_id: key.companyId,
        ...(name !== undefined && { company_name: name }),
        ...(list && { list: presentList(list) }),
      };
    });
  }
}

function presentList({ state, since, reason, serviceSays, lastVerifiedAt }: ListWithState): IssueCompanyModel['list'] {
  return {
    state,
    since: presentTime(since),
    ...(reason !== null && { reason }),
    ...(serviceSays !== null && { service_says: serviceSays }),
    last_verified_at: presentTime(lastVerifiedAt),
  };
}

/** Presents the issues. One statement reads the names of all sampled companies. */
async function presentIssues(db: Database, rows: readonly IssueRow[], publicUrl: URL): Promise<IssueModel[]> {
  const keys = rows.flatMap(({ environment, sample }) => sample.map((companyId) => ({ environment, companyId })));
  const names = await findCompanyNames(db, keys);
  const findings = await Promise.all(
    rows.map(async (row) => ({ rejected: await describeRejected(db, row), tokenResponses: await tokenResponsesOf(db, row) })),
  );
  return rows.map((row, n) => ({
    ...presentIssue(row, publicUrl, Date.now(), findings[n]!),
    samples: row.sample.map((companyId) => {
      const name = names.get(keyText({ environment: row.environment, companyId }));
      return { company_id: companyId, ...(name !== undefined && { company_name: name }) };
    }),
  }));
}

/** Facts about an issue that its row does not hold. */
interface Findings {
  readonly rejected: string | undefined;
  readonly tokenResponses: string | undefined;
}

function presentIssue(row: IssueRow, publicUrl: URL, now: number, findings: Findings): Omit<IssueModel, 'samples'> {
  const { id, cause, environment, resource, severity, companies, late, firstSeenAt, lastSeenAt, status, resolvedAt, sample } =
    row;
  const { snoozedUntil, snoozeReason, snoozedBy } = row;
  const { advice, action, anchor } = causeOf(cause);
  const { rejected, tokenResponses } = findings;
  const finding = rejected ?? (tokenResponses && `The token endpoint answered ${tokenResponses}.`);
  return {
    id,
    cause,
    environment,
    ...(resource !== null && { resource }),
    severity,
    companies,
    ...(late > 0 && { late }),
    first_seen_at: firstSeenAt.toISOString(),
    last_seen_at: lastSeenAt.toISOString(),
    status,
    ...(resolvedAt !== null && { resolved_at: resolvedAt.toISOString() }),
    ...(status === 'ongoing' &&
      snoozedUntil !== null &&
      snoozedUntil.getTime() > now && {
        snoozed: { until: snoozedUntil.toISOString(), reason: snoozeReason ?? '', by: snoozedBy ?? '' },
      }),
    advice: finding === undefined ? advice : `${finding} ${advice}`,
    ...(tokenResponses !== undefined && { token_answers: tokenResponses }),
    docs_url: `${withoutSlash(publicUrl)}${ISSUE_GUIDE_PATH}#${anchor}`,
    sample,
    action: action({ id, environment }),
  };
}
