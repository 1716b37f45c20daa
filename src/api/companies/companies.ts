import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Catalogue } from '../../catalogue/endpoint.js';
import type { Clock } from '../../core/clock.js';
import { type CompanyKey, companyNotFound, describeCompany } from '../../core/company.js';
import { isMusterError, MusterError } from '../../core/errors.js';
import type { QuietHours } from '../../core/quiet-hours.js';
import { Secret } from '../../core/secret.js';
import type { StaleAfterHours } from '../../core/stale-after.js';
import type { Database } from '../../db/connection/database.js';
import { explainDatabaseError } from '../../db/connection/sql-state.js';
import { CONNECTION_ORDERS } from '../../db/tables/connection-list.js';
import type { ConnectLinks } from '../../oauth/connect-links.js';
import type { Connections } from '../../oauth/connections.js';
import type { Onboarding } from '../../oauth/onboarding.js';
import { registerSecret } from '../../observability/secret-registry.js';
import type { Runs } from '../../runs/runs.js';
import { audited, auditedRefusal, recordDone } from '../plumbing/audit.js';
import { CSV, NEXT_CURSOR } from '../plumbing/csv.js';
import {
  CompanyId,
  CompanyParams,
  countedPageOf,
  EnvironmentName,
  listQuery,
  presentPage,
  ResourceName,
  SearchText,
  SortOrder,
} from '../plumbing/models.js';
import { operationsOf } from '../plumbing/operations.js';
import { presentRun, Run } from '../runs/run-model.js';
import { requestFirstSync } from '../runs/runs.js';
import { companiesCsv } from './companies-csv.js';
import { Company, CompanyStatusName, ListProofName, ListStateName, presentCompanies, READING_PROBLEMS } from './company-model.js';

export interface CompanyRoutesDependencies {
  readonly db: Database;
  readonly clock: Clock;
  readonly quiet: QuietHours;
  readonly catalogue: Catalogue;
  readonly connectLinks: ConnectLinks;
  readonly connections: Connections;
  readonly onboarding: Onboarding;
  readonly runs: Runs;
  /** A list is late once its last proof is older than this. */
  readonly staleAfterHours: StaleAfterHours;
}

const CompanyQuery = listQuery({
  status: CompanyStatusName.exactOptional(),
  environment: EnvironmentName.exactOptional(),
  q: SearchText.exactOptional().describe(
    'Part of the name, in any letter case and with or without diacritics, or the beginning of the company_id.',
  ),
  resource: ResourceName.exactOptional().describe(
    'With `state` or `proof`: companies whose list is in that state. Alone: companies for which the list was requested at least once.',
  ),
  state: ListStateName.exactOptional().describe('The state of the list in `resource`, or of any list of the catalogue.'),
  proof: ListProofName.exactOptional().describe(
    'The proof of that list, as `lists` of GET /api/overview counts it, whatever its newest walk did.',
  ),
  sort: z
    .enum(CONNECTION_ORDERS)
    .exactOptional()
    .describe(
      '`worst`: companies that must authorize again first, then companies with a list whose newest walk failed, that is late or was never proved, or whose newest walk proved nothing; paused companies come last. `proved`: by the oldest proof of its lists. Unset: by environment and company_id.',
    ),
  order: SortOrder,
});

const Onboard = z.strictObject({
  environment: EnvironmentName,
  company_id: CompanyId,
  refresh_token: z
    .string()
    .min(1, 'must not be empty')
    .regex(/^[\x20-\x7e]*$/, 'must be printable ASCII without line breaks')
    .meta({ format: 'password', description: 'Spent at once to prove it; the new pair is kept encrypted.' }),
});

const Resources = z
  .array(ResourceName)
  .min(1)
  .max(200)
  .exactOptional()
  .describe('Resources of the catalogue; all of them if left out.');

/** A request without a body asks for the defaults. */
const SyncCompany = z
  .strictObject({
    resources: Resources,
    mode: z
      .enum(['resume', 'full'])
      .exactOptional()
      .describe('Continue from the last checkpoints (the default), or read everything again.'),
  })
  .nullish();

/** A request without a body asks for every list. */
const VerifyCompany = z.strictObject({ resources: Resources }).nullish();

const ONBOARDING_PROBLEMS = [
  'company_not_found',
  'already_onboarded',
  'onboarding_in_progress',
  'environment_not_configured',
  'token_refused',
  'token_for_another_company',
  'token_unreadable',
  'service_unreachable',
  'service_refused',
  'token_not_stored',
] as const;

const { viewer, operator, admin } = operationsOf('companies');
const ADDRESS = '/companies/:environment/:company_id';

export function companyRoutes(deps: CompanyRoutesDependencies): FastifyPluginAsyncZod {
  const { db, catalogue, connections, onboarding, runs, staleAfterHours } = deps;

  return async (api) => {
    api.post(
      '/companies',
      admin('onboardCompany', 'Onboard a company, or give it a new token', {
        description:
          'Muster refreshes the token to prove it before it stores it; the first sync starts at once. 201 for a new company, 200 for one that had to authorize again.',
        body: Onboard,
        response: { 200: Company, 201: Company },
        problems: ONBOARDING_PROBLEMS,
      }),
      async ({ body, caller, log }, reply) => {
        registerSecret(body.refresh_token);
        const company = { environment: body.environment, companyId: body.company_id };
        const entry = { by: caller, action: 'company.onboard', company } as const;
        const { created } = await auditedRefusal(db, entry, () =>
          onboarding.onboard({ ...company, refreshToken: new Secret(body.refresh_token) }),
        );
        try {
          await recordDone(db.prisma, entry);
          await requestFirstSync(runs, company, created, log);
          return reply.code(created ? 201 : 200).send(await show(company));
        } catch (error) {
          throw failureAfterOnboarding(company, error);
        }
      },
    );

    api.get(
      '/companies',
      viewer('listCompanies', 'List the companies', {
        description: 'With Accept: text/csv the answer is a page of CSV, and next_cursor is in the header X-Next-Cursor.',
        querystring: CompanyQuery,
        response: {
          200: {
            description: 'A page of companies',
            headers: {
              [NEXT_CURSOR]: { description: 'next_cursor, where the answer is CSV; absent at the end.', type: 'string' },
            },
            content: {
              'application/json': { schema: countedPageOf(Company) },
              [CSV]: {
                schema: z.string().describe('RFC 4180, with a line of names: a line for each list that the filters choose.'),
              },
            },
          },
        },
      }),
      async ({ query: { q, sort, order, resource: wanted, state, proof, limit, cursor, ...query }, headers }, reply) => {
        const resources = catalogue.endpoints.map(({ resource }) => resource);
        const named = resources.filter((resource) => wanted === undefined || resource === wanted);
        const isFiltered = [wanted, state, proof].some((value) => value !== undefined);
        const list = isFiltered ? { resources: named, state, proof, staleAfterHours } : undefined;
        const filter = { ...query, search: q, list };
        const ordered = { sort: sort && { by: sort, resources, staleAfterHours }, isDescending: order === 'desc' };
        const page = await connections.list({ ...filter, ...ordered, limit, cursor });
        const companies = await presentCompanies(deps, page.data);
        if (!headers.accept?.includes(CSV)) {
          const total = await connections.count(filter);
          return { ...presentPage(page, (row) => row), data: companies, total };
        }
        if (page.nextCursor !== undefined) reply.header(NEXT_CURSOR, page.nextCursor);
        const csv = companiesCsv(companies, { resource: wanted, state });
        return reply.type(`${CSV}; charset=utf-8; header=present`).serializer(String).send(csv) as never;
      },
    );

    api.get(
      ADDRESS,
      viewer('showCompany', 'Show a company', {
        params: CompanyParams,
        response: { 200: Company },
        problems: ['company_not_found'],
      }),
      async ({ params: company }) => show(company),
    );

    api.post(
      `${ADDRESS}/sync`,
      operator('syncCompany', 'Sync a company now', {
        description:
          'While a run of the company is queued or running, the response is that run. A run that waits to retry starts now and gets as many attempts as a new one, unless it is older than six hours. In quiet hours the run waits for their end: `waits_until`.',
        params: CompanyParams,
        body: SyncCompany,
        response: { 202: z.object({ run: Run }) },
        problems: READING_PROBLEMS,
      }),
      async ({ params: company, body, caller }, reply) => {
        const options = body ?? {};
        const run = await audited(db, { by: caller, action: 'company.sync', company, details: options }, () =>
          runs.request({ company, trigger: 'manual', ...options }),
        );
        return reply.code(202).send({ run: presentRun(run) });
      },
    );

    api.post(
      `${ADDRESS}/verify`,
      operator('verifyCompany', 'Compare the service with the mirror', {
        description:
          'An independent reader reads the lists a second time and compares; it changes nothing. While such a run of the company is queued or running, the response is that run. It begins once no sync of the company is queued or running. `walks[].verify` of the run has the findings.',
        params: CompanyParams,
        body: VerifyCompany,
        response: { 202: z.object({ run: Run }) },
        problems: READING_PROBLEMS,
      }),
      async ({ params: company, body, caller }, reply) => {
        const options = body ?? {};
        const run = await audited(db, { by: caller, action: 'company.verify', company, details: options }, () =>
          runs.requestVerification({ company, trigger: 'verify', ...options }),
        );
        return reply.code(202).send({ run: presentRun(run) });
      },
    );

    for (const verb of ['pause', 'resume'] as const) {
      api.post(
        `${ADDRESS}/${verb}`,
        operator(
          `${verb}Company`,
          verb === 'pause' ? 'Stop syncing a company until it is resumed' : 'Sync a paused company again',
          {
            params: CompanyParams,
            response: { 200: Company },
            problems: verb === 'pause' ? ['company_not_found'] : ['company_not_found', 'reauthorization_required'],
          },
        ),
        async ({ params: company, caller }) => {
          await audited(db, { by: caller, action: `company.${verb}`, company }, () => connections[verb](company));
          return show(company);
        },
      );
    }

    api.delete(
      ADDRESS,
      admin('removeCompany', 'Remove a company', {
        description: 'Deletes its tokens and mirrored rows; the audit stays.',
        params: CompanyParams,
        response: { 204: z.undefined() },
        problems: ['company_not_found'],
      }),
      async ({ params: company, caller }, reply) => {
        await auditedRefusal(db, { by: caller, action: 'company.remove', company }, () => connections.remove(company, caller));
        return reply.code(204).send();
      },
    );
  };

  async function show(company: CompanyKey) {
    const connection = await connections.find(company);
    if (!connection) throw companyNotFound(company);
    const [model] = await presentCompanies(deps, [connection]);
    return model!;
  }
}

/** The error of a step after the onboarding: it says that the token is stored, so that the caller does not onboard again. */
function failureAfterOnboarding(company: CompanyKey, cause: unknown): MusterError {
  const error = explainDatabaseError(cause);
  const [code, why] = isMusterError(error) ? [error.code, error.message] : (['internal_error', 'the log says why'] as const);
  return new MusterError(
    code,
    `${describeCompany(company)} is onboarded and its tokens are stored, but the step after that failed: ${why}. Do not onboard it again; look at the company`,
    { cause, details: { stored: true } },
  );
}
