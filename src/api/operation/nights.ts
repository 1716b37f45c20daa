import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Catalogue } from '../../catalogue/endpoint.js';
import type { Clock } from '../../core/clock.js';
import { companyNotFound } from '../../core/company.js';
import type { Database } from '../../db/connection/database.js';
import { type ListNight, listNights, MOST_NIGHTS, type NightCounts, readListNights } from '../../db/tables/nights.js';
import type { Connections } from '../../oauth/connections.js';
import { CompanyParams, Count, EnvironmentName, presentTime, queryOf, Time } from '../plumbing/models.js';
import { operationsOf } from '../plumbing/operations.js';

const Day = z.iso.date().describe('The day on which the night began, in SYNC_TIMEZONE.');
const Changes = { inserted: Count, updated: Count, deleted: Count };

const Night = z
  .object({
    night: Day,
    began_at: Time.describe('When the schedule started for the first time on that day.'),
    ended_at: Time.nullable().describe('When the next night began; null for the newest.'),
    companies_due: Count.describe('Companies whose nightly run was made, or is still to come.'),
    runs: z
      .object({ finished: Count, succeeded: Count, failed: Count, cancelled: Count })
      .describe('Nightly runs; `finished` counts all that have ended, whatever their outcome.'),
    lists: z.object({
      due: Count.describe(
        'Lists of the night that runs had to read, or nightly runs still have to; without lists that have a schedule of their own.',
      ),
      verified: Count.describe('Proved complete, by whatever run but those by the schedules of lists.'),
      unverified: Count.describe('Read to the end, and not proved by any run.'),
    }),
    changes: z.object(Changes).describe('What runs of any kind did to the mirror until the next night.'),
    started_at: Time.nullable().describe('When a worker took the first nightly run.'),
    finished_at: Time.nullable().describe('When the last nightly run ended; null while one is to come or under way.'),
  })
  .meta({
    id: 'Night',
    description: 'How a night went. Its runs are those with a `created_at` from `began_at` on, before `ended_at`.',
  });
export type NightModel = z.output<typeof Night>;

const ListHistory = z
  .object({
    resource: z.string(),
    nights: z
      .array(
        z.object({
          night: Day,
          records: Count.nullable().describe(
            'Living records when the last walk of the night had read the list; null where none read it to its end.',
          ),
          verified: z.boolean().describe('Whether a walk of the night proved the list complete.'),
          ...Changes,
        }),
      )
      .describe('The newest first. Nights without a walk of the list are left out.'),
  })
  .meta({ id: 'ListHistory', description: 'The rows and changes of one list, night by night.' });
export type ListHistoryModel = z.output<typeof ListHistory>;

const DAY_MS = 86_400_000;

const Days = z
  .string()
  .regex(/^0*[1-9]\d{0,8}$/, 'must be a whole number above 0')
  .transform(Number)
  .refine((days) => days <= MOST_NIGHTS, `must be ${MOST_NIGHTS} at most: older nights are not kept`)
  .default(30)
  .meta({ type: 'integer', minimum: 1, maximum: MOST_NIGHTS, description: '30 unless said.' });

export interface NightRoutesDependencies {
  readonly db: Database;
  readonly clock: Clock;
  readonly catalogue: Catalogue;
  readonly connections: Connections;
}

/** Reads the nights, which a sweep of the worker counts within seconds. */
export function nightRoutes({ db, clock, catalogue, connections }: NightRoutesDependencies): FastifyPluginAsyncZod {
  const begunIn = (days: number) => new Date(clock.now() - days * DAY_MS);

  return async (api) => {
    api.get(
      '/nights',
      operationsOf('operation').viewer('listNights', 'List how each night went, newest first', {
        querystring: queryOf({ environment: EnvironmentName.exactOptional(), days: Days }),
        response: { 200: z.object({ data: z.array(Night) }) },
      }),
      async ({ query: { environment, days } }) => ({
        data: (await listNights(db, { since: begunIn(days), environment })).map(presentNight),
      }),
    );

    api.get(
      '/companies/:environment/:company_id/history',
      operationsOf('companies').viewer('showCompanyHistory', "Show the rows and changes of a company's lists, night by night", {
        params: CompanyParams,
        querystring: queryOf({ days: Days }),
        response: { 200: z.object({ data: z.array(ListHistory) }) },
        problems: ['company_not_found'],
      }),
      async ({ params: company, query: { days } }) => {
        if (!(await connections.find(company))) throw companyNotFound(company);
        const resources = catalogue.endpoints.map(({ resource }) => resource);
        return { data: byList(await readListNights(db, { ...company, resources, since: begunIn(days) })) };
      },
    );
  };
}

function presentNight({ night, beganAt, endedAt, startedAt, finishedAt, ...counts }: NightCounts): NightModel {
  const { due, finished, succeeded, failed, cancelled, lists, verified, unverified, inserted, updated, deleted } = counts;
  return {
    night,
    began_at: beganAt.toISOString(),
    ended_at: presentTime(endedAt),
    companies_due: due,
    runs: { finished, succeeded, failed, cancelled },
    lists: { due: lists, verified, unverified },
    changes: { inserted, updated, deleted },
    started_at: presentTime(startedAt),
    finished_at: presentTime(finishedAt),
  };
}

function byList(rows: readonly ListNight[]): ListHistoryModel[] {
  const lists = new Map<string, ListHistoryModel['nights']>();
  for (const { resource, ...night } of rows) lists.set(resource, [...(lists.get(resource) ?? []), night]);
  return [...lists].map(([resource, nights]) => ({ resource, nights }));
}
