import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { ENVIRONMENTS } from '../../core/company.js';
import type { ByEnvironment, ProviderSettings } from '../../core/provider-settings.js';
import type { Database } from '../../db/connection/database.js';
import { type BudgetUse, readBudgetUse } from '../../db/tables/request-budgets.js';
import { Count, EnvironmentName } from '../plumbing/models.js';
import { operationsOf } from '../plumbing/operations.js';

export const Budget = z
  .object({
    environment: EnvironmentName,
    limit_per_second: z.number().nullable().describe('Requests a second; null while nothing limits them.'),
    in_flight_limit: Count.nullable().describe('Requests at once; null while it is not set and no worker asks for anything.'),
    source: z.enum(['set', 'found']).describe('Whether the settings say a limit, or it was found by asking.'),
    used_last_minute: Count.describe('Requests that left, refused ones included.'),
    refused_last_minute: Count.describe('Requests refused with status 429.'),
  })
  .meta({ id: 'Budget', description: 'What all workers together ask of the API of an environment.' });
export type BudgetModel = z.output<typeof Budget>;

export interface BudgetRoutesDependencies {
  readonly db: Database;
  readonly providers: ByEnvironment<ProviderSettings>;
}

const { viewer } = operationsOf('operation');

export function budgetRoutes({ db, providers }: BudgetRoutesDependencies): FastifyPluginAsyncZod {
  return async (api) => {
    api.get(
      '/budget',
      viewer('showBudget', "Show what each environment's API is asked for", {
        response: { 200: z.object({ data: z.array(Budget) }) },
      }),
      async () => ({ data: await readBudgets(db, providers) }),
    );
  };
}

/** Reads the use of the budget of each configured environment. */
export async function readBudgets(
  db: Parameters<typeof readBudgetUse>[0],
  providers: ByEnvironment<ProviderSettings>,
): Promise<BudgetModel[]> {
  const uses = new Map((await readBudgetUse(db)).map((use) => [use.environment, use]));
  const environments = ENVIRONMENTS.filter((environment) => providers[environment]);
  return environments.map((environment) => presentBudget(environment, providers[environment]!, uses.get(environment)));
}

function presentBudget(
  environment: BudgetModel['environment'],
  { requestsPerSecond, maxConcurrentRequests }: ProviderSettings,
  use: BudgetUse | undefined,
): BudgetModel {
  const limits = [requestsPerSecond, use?.announced, use?.rate].filter((limit) => typeof limit === 'number');
  return {
    environment,
    limit_per_second: limits.length === 0 ? null : Math.round(Math.min(...limits) * 100) / 100,
    in_flight_limit: maxConcurrentRequests ?? use?.held ?? null,
    source: requestsPerSecond === undefined && maxConcurrentRequests === undefined ? 'found' : 'set',
    used_last_minute: use?.used ?? 0,
    refused_last_minute: use?.refused ?? 0,
  };
}
