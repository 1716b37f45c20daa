import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { keyText } from '../../core/company.js';
import { causeOf } from '../../core/issue-causes.js';
import { withoutSlash } from '../../core/own-address.js';
import type { Database } from '../../db/connection/database.js';
import { findCompanyNames } from '../../db/tables/companies.js';
import { findIssue, ISSUE_SEVERITIES, ISSUE_STATUSES, type IssueRow, listIssues } from '../../db/tables/issues.js';
import { tokenResponsesOf } from '../companies/token-refusals.js';
import { CompanyName } from '../plumbing/company-names.js';
import { Count, EnvironmentName, IdParams, listQuery, pageOf, Time } from '../plumbing/models.js';
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
    first_seen_at: Time,
    last_seen_at: Time,
    status: IssueStatusName,
    resolved_at: Time.optional(),
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

export interface IssueRoutesDependencies {
  readonly db: Database;
  readonly publicUrl: URL;
}

const { viewer } = operationsOf('issues');

export function issueRoutes({ db, publicUrl }: IssueRoutesDependencies): FastifyPluginAsyncZod {
  return async (api) => {
    api.get(
      '/issues',
      viewer('listIssues', 'List the issues, newest first', {
        querystring: listQuery({ status: IssueStatusName.exactOptional(), environment: EnvironmentName.exactOptional() }),
        response: { 200: pageOf(Issue) },
      }),
      async ({ query }) => {
        const { data, nextCursor } = await listIssues(db, query);
        return { data: await presentIssues(db, data, publicUrl), next_cursor: nextCursor ?? null };
      },
    );

    api.get(
      '/issues/:id',
      viewer('showIssue', 'Show an issue', { params: IdParams, response: { 200: Issue }, problems: ['issue_not_found'] }),
      async ({ params: { id } }) => {
        const [issue] = await presentIssues(db, [await findIssue(db, { id })], publicUrl);
        return issue!;
      },
    );
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
    ...presentIssue(row, publicUrl, findings[n]!),
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

function presentIssue(row: IssueRow, publicUrl: URL, findings: Findings): Omit<IssueModel, 'samples'> {
  const { id, cause, environment, resource, severity, companies, firstSeenAt, lastSeenAt, status, resolvedAt, sample } = row;
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
    first_seen_at: firstSeenAt.toISOString(),
    last_seen_at: lastSeenAt.toISOString(),
    status,
    ...(resolvedAt !== null && { resolved_at: resolvedAt.toISOString() }),
    advice: finding === undefined ? advice : `${finding} ${advice}`,
    ...(tokenResponses !== undefined && { token_answers: tokenResponses }),
    docs_url: `${withoutSlash(publicUrl)}${ISSUE_GUIDE_PATH}#${anchor}`,
    sample,
    action: action({ id, environment }),
  };
}
