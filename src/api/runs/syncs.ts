import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { MusterError } from '../../core/errors.js';
import type { Database } from '../../db/connection/database.js';
import { findIssueCompanies } from '../../db/tables/issue-companies.js';
import { findIssue } from '../../db/tables/issues.js';
import { type ChosenCompanies, MOST_SKIPPED } from '../../db/tables/run-requests.js';
import { type IssueSearchDependencies, issueSearchOf } from '../../runs/issue-search.js';
import type { Runs, SyncFilter } from '../../runs/runs.js';
import { audited } from '../plumbing/audit.js';
import { CompanyName, withCompanyNames } from '../plumbing/company-names.js';
import { CompanyId, Count, EnvironmentName, queryOf, ResourceName } from '../plumbing/models.js';
import { operationsOf } from '../plumbing/operations.js';

/** More companies are named by `environment` or `status`, or by several calls. */
const MOST_COMPANIES = 2_000;
/** Companies that an audit entry names; it counts all of them. */
const MOST_AUDITED = 100;
/** Companies that a preview names. */
const SAMPLE = 20;

const CompanyOfSync = z.strictObject({ environment: EnvironmentName, company_id: CompanyId });

const Status = z
  .literal('failed')
  .exactOptional()
  .describe('Only companies whose last run failed. Runs by the schedules of lists count only where there are no nights.');
const IssueId = z
  .uuid('must be a GUID')
  .transform((id) => id.toLowerCase())
  .exactOptional()
  .describe('The companies that have the trouble of this issue now, and its list. Not together with `companies` or `status`.');

/** A request without a body asks for a run of every active company. */
const SyncMany = z
  .strictObject({
    companies: z
      .array(CompanyOfSync)
      .min(1, 'must name at least one company')
      .max(MOST_COMPANIES, `must name at most ${MOST_COMPANIES} companies: send several calls, or use environment or status`)
      .exactOptional()
      .describe('Exactly these companies. If one of them is not onboarded, nothing is requested (404).'),
    resources: z
      .array(ResourceName)
      .min(1)
      .max(200)
      .exactOptional()
      .describe('Only these lists; all of the catalogue if left out, or the list of the issue.'),
    issue_id: IssueId,
    status: Status,
    environment: EnvironmentName.exactOptional(),
  })
  .nullish();
type SyncManyBody = NonNullable<z.output<typeof SyncMany>>;

const Skipped = z.object({
  environment: EnvironmentName,
  company_id: z.string(),
  company_name: CompanyName,
  code: z.enum(['company_paused', 'reauthorization_required']),
});

const OfSkipped = {
  skipped_count: Count.optional().describe(
    'Companies among them that are paused or must authorize again: nothing is requested for them. Absent if there is none.',
  ),
  skipped: z.array(Skipped).optional().describe(`These companies, the first ${MOST_SKIPPED} of them.`),
};

const Queued = z
  .object({ queued: z.int().describe('Companies for which a run was requested, or is under way.'), ...OfSkipped })
  .meta({ id: 'QueuedSyncs', description: 'How many companies are synced, and which are not.' });
export type QueuedModel = z.output<typeof Queued>;

const SyncPreview = z
  .object({
    companies: Count.describe('Companies for which POST /api/syncs would request a run now.'),
    resources: z.array(z.string()).nullable().describe('The lists that would be walked; null: all of them.'),
    sample: z
      .array(z.object({ environment: EnvironmentName, company_id: z.string(), company_name: CompanyName }))
      .describe(`Some of the companies, ${SAMPLE} at most.`),
    ...OfSkipped,
  })
  .meta({ id: 'SyncPreview', description: 'The companies of a sync of many, before it is requested.' });
export type SyncPreviewModel = z.output<typeof SyncPreview>;

interface SyncRoutesDependencies extends IssueSearchDependencies {
  readonly db: Database;
  readonly runs: Runs;
}

const { viewer, operator } = operationsOf('runs');

export function syncRoutes(deps: SyncRoutesDependencies): FastifyPluginAsyncZod {
  const { db, runs } = deps;
  const search = issueSearchOf(deps, false);

  return async (api) => {
    api.post(
      '/syncs',
      operator('syncCompanies', 'Sync many companies now', {
        description:
          'Every active company, or those that the body names: exactly these, those of an issue with its list, those whose last run failed, those of an environment. Some runs are created at once, the others by a worker. A company whose run is under way keeps that run. An open hold of cause share is renewed by the next verified walk of its list, and other holds stay as they are.',
        body: SyncMany,
        response: { 202: Queued },
        problems: ['company_not_found', 'issue_not_found', 'unknown_resource'],
      }),
      async ({ caller, body }, reply) => {
        const asked = body ?? {};
        const { environment } = asked;
        const entry = {
          by: caller,
          action: 'companies.sync',
          ...(environment && { environment }),
          details: detailsOf(asked),
        } as const;
        const chosen = await audited(db, entry, async () => runs.requestMany(await filterOf(asked)));
        return reply.code(202).send({ queued: chosen.count, ...(await presentSkipped(chosen)) });
      },
    );

    api.get(
      '/syncs',
      viewer('previewSyncs', 'Show which companies a sync of many would reach', {
        description: 'The same choice as POST /api/syncs with these members. Nothing is requested.',
        querystring: queryOf({ issue_id: IssueId, status: Status, environment: EnvironmentName.exactOptional() }),
        response: { 200: SyncPreview },
        problems: ['issue_not_found', 'unknown_resource'],
      }),
      async ({ query }) => {
        const filter = await filterOf(query);
        const { first, ...chosen } = await runs.previewMany({ ...filter, sample: SAMPLE });
        const keys = first.map(({ environment, companyId }) => ({ environment, company_id: companyId }));
        return {
          companies: chosen.count,
          resources: filter.resources ? [...filter.resources] : null,
          sample: await withCompanyNames(db, keys),
          ...(await presentSkipped(chosen)),
        };
      },
    );
  };

  /** Throws invalid_request for members that contradict one another: a wrong guess would sync companies that were not meant. */
  async function filterOf({ companies, issue_id, status, environment, resources }: SyncManyBody): Promise<SyncFilter> {
    if (companies && (status ?? issue_id) !== undefined)
      throw contradiction('companies names them exactly: leave out status and issue_id.');
    if (companies && environment && companies.some((company) => company.environment !== environment))
      throw contradiction(`companies has some outside of the environment ${environment}: leave out environment.`);
    if (issue_id === undefined) {
      const named = companies?.map((each) => ({ environment: each.environment, companyId: each.company_id }));
      return { environment, status, resources, ...(named && { companies: named }) };
    }
    if (status) throw contradiction('issue_id names the companies: leave out status.');
    const issue = await findIssue(db, { id: issue_id });
    if (environment && environment !== issue.environment)
      throw contradiction(`The issue is one of the environment ${issue.environment}: leave out environment.`);
    if (issue.resource !== null && resources?.some((resource) => resource !== issue.resource))
      throw contradiction(`The issue is one of the list ${issue.resource}: leave out resources.`);
    return {
      companies: await findIssueCompanies(db, issue, search()),
      resources: issue.resource === null ? resources : [issue.resource],
    };
  }

  async function presentSkipped({ skipped, skippedCount }: ChosenCompanies) {
    if (skippedCount === 0) return {};
    const rows = skipped.map(({ environment, companyId, status }) => ({
      environment,
      company_id: companyId,
      code: status === 'paused' ? ('company_paused' as const) : status,
    }));
    return { skipped_count: skippedCount, skipped: await withCompanyNames(db, rows) };
  }
}

function contradiction(why: string): MusterError {
  return new MusterError('invalid_request', `The request contradicts itself: ${why} Nothing was requested.`);
}

/** The request as the audit keeps it. */
function detailsOf(asked: SyncManyBody) {
  const { companies, environment: _, ...rest } = asked;
  if (!companies) return rest;
  const named = companies.slice(0, MOST_AUDITED).map(({ environment, company_id }) => `${environment}/${company_id}`);
  return { ...rest, companies: named, count: companies.length };
}
