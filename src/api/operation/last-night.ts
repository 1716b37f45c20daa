import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Catalogue } from '../../catalogue/endpoint.js';
import type { Clock } from '../../core/clock.js';
import { ENVIRONMENTS, type Environment, keyText } from '../../core/company.js';
import { singleFlight } from '../../core/single-flight.js';
import type { StaleAfterHours } from '../../core/stale-after.js';
import type { Database } from '../../db/connection/database.js';
import {
  LACKING_STATES,
  type LackingList,
  listLacking,
  type NightAsked,
  readIsUnderWay,
  readLastNight,
} from '../../db/tables/last-night.js';
import { findListStates } from '../../db/tables/list-states.js';
import { nightsAround, type Schedule } from '../../runs/schedule.js';
import { CompanyName, companyFilterOf, withCompanyNames } from '../plumbing/company-names.js';
import {
  CompanySearchFilters,
  Count,
  EnvironmentName,
  listQuery,
  pageOf,
  presentTime,
  queryOf,
  ResourceName,
  Time,
} from '../plumbing/models.js';
import { operationsOf } from '../plumbing/operations.js';

const StateName = z
  .enum(LACKING_STATES)
  .describe(
    'reauthorization_required: its company must authorize again. on_time: the proof before this night is not too old yet. The others as in GET /api/companies.',
  );

const LastNight = z
  .object({
    began_at: Time.describe('When it began by SYNC_CRON.'),
    next_at: Time.describe('When the next one begins.'),
    under_way: z.boolean().describe('Runs of the night have not ended, or are still to come.'),
    lists: z
      .object({ due: Count, proved: Count.describe('Proved complete since it began, by whatever run.') })
      .describe(
        'Lists of companies that were onboarded before it began, and are not paused. Lists that are unavailable do not count.',
      ),
    lacking: z
      .array(z.object({ state: StateName, lists: Count }))
      .readonly()
      .describe('The lists that are due and not proved, by their state. GET /api/unproved lists them.'),
  })
  .meta({ id: 'LastNight', description: 'Whether the newest night is complete.' });
export type LastNightModel = z.output<typeof LastNight>;

const UnprovedList = z
  .object({
    environment: EnvironmentName,
    company_id: z.string(),
    company_name: CompanyName,
    resource: z.string(),
    state: StateName,
    since: Time.nullable().describe('Since when it is in that state; null where that is not known.'),
    reason: z.string().optional(),
    service_says: z.string().optional().describe("The service's own sentence, as text."),
    last_verified_at: Time.nullable(),
    last_run_id: z.string().nullable(),
  })
  .meta({ id: 'UnprovedList', description: 'A list that lacks a proof since the newest night began.' });
export type UnprovedListModel = z.output<typeof UnprovedList>;

/** One response serves all callers for so long. */
const KEEP_MS = 2_000;

export interface LastNightDependencies {
  readonly db: Database;
  readonly clock: Clock;
  readonly catalogue: Catalogue;
  readonly schedule: Schedule;
  readonly staleAfterHours: StaleAfterHours;
}

const { viewer } = operationsOf('operation');

/** Says whether the newest night is complete, and which lists it lacks. */
export function lastNightRoutes(deps: LastNightDependencies): FastifyPluginAsyncZod {
  const { db, clock, catalogue, schedule, staleAfterHours } = deps;
  const resources = catalogue.endpoints.map(({ resource }) => resource);
  const asked = (environment?: Environment): NightAsked => {
    const { began, lastTurn, next } = nightsAround(schedule, clock.now());
    const times = { beganAt: new Date(began), lastTurnAt: new Date(lastTurn), nextAt: new Date(next) };
    return { resources, environment, staleAfterHours, ...times };
  };
  const shared = (environment?: Environment) => singleFlight(() => readNight(db, asked(environment)), { clock, keepMs: KEEP_MS });
  const ofAll = shared();
  const ofOne = new Map(ENVIRONMENTS.map((environment) => [environment, shared(environment)]));

  return async (api) => {
    api.get(
      '/last-night',
      viewer('showLastNight', 'Show whether the newest night is complete', {
        querystring: queryOf({ environment: EnvironmentName.exactOptional() }),
        response: { 200: LastNight },
      }),
      ({ query: { environment } }) => (environment ? ofOne.get(environment)! : ofAll)(),
    );

    api.get(
      '/unproved',
      viewer('listUnproved', 'List the lists that lack a proof since the newest night began', {
        querystring: listQuery({
          ...CompanySearchFilters,
          resource: ResourceName.exactOptional(),
          state: StateName.exactOptional(),
        }),
        response: { 200: pageOf(UnprovedList) },
      }),
      async ({ query: { resource, ...query } }) => {
        const filter = await companyFilterOf(db, query);
        const night = asked(filter.environment);
        const only = resource === undefined ? resources : resources.filter((one) => one === resource);
        const { data, nextCursor } = await listLacking(db, { ...night, ...filter, resources: only });
        return { data: await present(data), next_cursor: nextCursor ?? null };
      },
    );
  };

  async function present(lists: readonly LackingList[]): Promise<UnprovedListModel[]> {
    const companyIds = [...new Set(lists.map(({ companyId }) => companyId))];
    const states = await findListStates(db, { companyIds, resources, staleAfterHours });
    const stateOf = new Map(states.map((list) => [`${keyText(list)} ${list.resource}`, list]));
    const models = lists.map(({ companyId, environment, resource, state, lastVerifiedAt, lastRunId }) => {
      const known = stateOf.get(`${keyText({ environment, companyId })} ${resource}`);
      // Between the two statements a list may have come into another state, whose reason would be wrong.
      const isSame = known?.state === state;
      return {
        environment,
        company_id: companyId,
        resource,
        state,
        since: presentTime(isSame ? known.since : null),
        ...(isSame && known.reason !== null && { reason: known.reason }),
        ...(isSame && known.serviceSays !== null && { service_says: known.serviceSays }),
        last_verified_at: presentTime(lastVerifiedAt),
        last_run_id: lastRunId,
      };
    });
    return withCompanyNames(db, models);
  }
}

async function readNight(db: Database, asked: NightAsked): Promise<LastNightModel> {
  const { due, proved, lacking } = await readLastNight(db, asked);
  return {
    began_at: asked.beganAt.toISOString(),
    next_at: asked.nextAt.toISOString(),
    under_way: await readIsUnderWay(db, asked),
    lists: { due, proved },
    lacking,
  };
}
