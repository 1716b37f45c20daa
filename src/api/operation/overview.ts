import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Catalogue } from '../../catalogue/endpoint.js';
import type { Clock } from '../../core/clock.js';
import { ENVIRONMENTS, type Environment } from '../../core/company.js';
import type { QuietHours } from '../../core/quiet-hours.js';
import { singleFlight } from '../../core/single-flight.js';
import { nightlyHours, type StaleAfterHours } from '../../core/stale-after.js';
import { readByIndex } from '../../db/statements/by-index.js';
import { countCompanies } from '../../db/tables/connections.js';
import { countOpenHolds } from '../../db/tables/holds.js';
import { countOngoingIssues } from '../../db/tables/issues.js';
import { countProofs, countProvedSince, type ProofCounts } from '../../db/tables/list-counts.js';
import { findLastExport, type LastExport } from '../../db/tables/night-exports.js';
import { countActiveRuns, countLastRuns, countNight, measureWait } from '../../db/tables/run-counts.js';
import { estimateNight } from '../../db/tables/walks.js';
import { readFailingSince } from '../../db/tables/webhook.js';
import { countWorkers } from '../../db/tables/workers.js';
import { nightsAround, type Schedule } from '../../runs/schedule.js';
import { Count, EnvironmentName, presentTime, queryOf, Time } from '../plumbing/models.js';
import { operationsOf } from '../plumbing/operations.js';
import { readinessOf } from '../plumbing/readiness.js';
import { Budget, type BudgetRoutesDependencies, readBudgets } from './budget.js';
import { type HealthRoutesDependencies, ReadinessModel } from './health.js';

const Overview = z
  .object({
    ready: z.boolean().describe('Whether every part is there.'),
    parts: ReadinessModel.shape.parts,
    companies: z.object({ active: Count, paused: Count, reauthorization_required: Count }),
    companies_last_run_failed: Count.describe(
      'Active companies whose last run that ended has failed. Runs by the schedules of lists count only where there are no nights.',
    ),
    lists: z
      .object({
        total: Count,
        verified: Count.describe(
          'Their last proof is no older than STALE_AFTER_HOURS, which is their deadline, or their company is paused.',
        ),
        late: Count.describe('Their last proof is older than STALE_AFTER_HOURS, and their company is not paused.'),
        never: Count.describe('They were never proved complete, whether they were requested or not.'),
        first_proof_overdue: Count.describe(
          'Those of `never` that were not proved within STALE_AFTER_HOURS of their first walk and of the onboarding, but for paused companies.',
        ),
        unavailable: Count.describe('Their companies do not have them, as the service says. Not part of total.'),
        unverified: Count.describe('The newest walk that read them to their end proved nothing.'),
      })
      .describe("The catalogue's lists of every company: verified, late and never add up to total."),
    stale_after_hours: Count.describe('STALE_AFTER_HOURS: so long after its last proof a list must be proved again.'),
    runs: z.object({ queued: Count, running: Count }),
    estimated_seconds_left: Count.nullable().describe(
      'How long the runs that have not ended still take, in the environment that takes longest; null where that is not known.',
    ),
    oldest_waiting_seconds: Count.nullable().describe(
      'How long the run that is first in line has been due; null where none waits.',
    ),
    last_night: z
      .object({
        finished: Count.describe('Nightly runs that have ended, cancelled ones included.'),
        succeeded: Count,
        failed: Count,
        verified_lists: Count.describe('Lists that were proved complete since the night began, by whatever run.'),
      })
      .describe('The newest night that has begun by SYNC_CRON.'),
    last_export: z
      .object({
        night: z.iso.date(),
        written: Count.describe('Files of the night that are there.'),
        waiting: Count.describe('Files that are to be written, and did not fail so far.'),
        failed: Count.describe('Files whose last attempt has failed.'),
        finished_at: Time.nullable().describe('When the last file was written; null until all are.'),
        problem: z.string().nullable().describe('Why a file is not there.'),
      })
      .nullable()
      .describe('The newest night that was exported, or is to be: EXPORT_TO. Null where there is none.'),
    holds_open: Count,
    issues_open: Count.describe('Ongoing issues, without those that a person has snoozed.'),
    issues_snoozed: Count.describe('Ongoing issues that a person has snoozed.'),
    oldest_verified_at: Time.nullable().describe('The oldest last proof, but for paused companies and unavailable lists.'),
    webhook_failing_since: Time.nullable().describe(
      'Since when the webhook has taken nothing; null where it takes what it is sent.',
    ),
    workers: Count.describe('Workers that live, whatever the environment.'),
    quiet_until: Time.nullable().describe(
      'While the installation has quiet hours (QUIET_HOURS), when they end: until then Muster asks nothing of the service by itself, except for companies with quiet hours of their own.',
    ),
    budget: z.array(Budget).describe('As GET /api/budget has it.'),
  })
  .meta({ id: 'Overview', description: 'Who must act, which lists are late, and whether the last night is complete.' });
export type OverviewModel = z.output<typeof Overview>;

/** One response serves all callers for so long. */
const KEEP_MS = 2_000;

export interface OverviewRouteDependencies extends HealthRoutesDependencies, BudgetRoutesDependencies {
  readonly clock: Clock;
  readonly catalogue: Catalogue;
  readonly schedule: Schedule;
  readonly quiet: QuietHours;
  readonly staleAfterHours: StaleAfterHours;
}

const { viewer } = operationsOf('operation');

/** Concurrent callers share one count of each environment, and one of both. */
export function overviewRoute(deps: OverviewRouteDependencies): FastifyPluginAsyncZod {
  const shared = (environment?: Environment) => singleFlight(() => readOverview(deps, environment), { ...deps, keepMs: KEEP_MS });
  const overviewOfAll = shared();
  const overviewOfOne = new Map(ENVIRONMENTS.map((environment) => [environment, shared(environment)]));

  return async (api) => {
    api.get(
      '/overview',
      viewer('showOverview', 'Show who must act, which lists are late, and whether the last night is complete', {
        querystring: queryOf({ environment: EnvironmentName.exactOptional() }),
        response: { 200: Overview },
      }),
      ({ query: { environment } }) => (environment ? overviewOfOne.get(environment)! : overviewOfAll)(),
    );
  };
}

async function readOverview(
  { db, clock, catalogue, schedule, quiet, staleAfterHours, readiness, providers }: OverviewRouteDependencies,
  environment: Environment | undefined,
): Promise<OverviewModel> {
  const nightBeganAt = new Date(nightsAround(schedule, clock.now()).began);
  const resources = catalogue.endpoints.map(({ resource }) => resource);
  const counting = readByIndex(db, async (tx) => {
    const companies = await countCompanies(tx, { environment });
    const counted = { resources, environment, staleAfterHours };
    const proofs = await countProofs(tx, counted);
    const runs = await countActiveRuns(tx, { environment });
    const issues = await countOngoingIssues(tx, { environment });
    const night = await countNight(tx, { since: nightBeganAt, environment });
    return {
      companies: { active: 0, paused: 0, reauthorization_required: 0, ...byStatus(companies) },
      companies_last_run_failed: byStatus(await countLastRuns(tx, { environment })).failed ?? 0,
      lists: presentProofs(proofs),
      stale_after_hours: nightlyHours(staleAfterHours),
      estimated_seconds_left: longest(await estimateNight(tx), environment),
      oldest_waiting_seconds: await measureWait(tx, { environment }),
      runs: { queued: 0, running: 0, ...byStatus(runs) },
      last_night: { ...night, verified_lists: await countProvedSince(tx, { ...counted, since: nightBeganAt }) },
      last_export: presentExport(await findLastExport(tx, { environment })),
      holds_open: await countOpenHolds(tx, { environment }),
      issues_open: issues.open,
      issues_snoozed: issues.snoozed,
      oldest_verified_at: presentTime(proofs.oldestVerifiedAt),
      webhook_failing_since: presentTime(await readFailingSince(tx)),
      workers: await countWorkers(tx),
    };
  });
  const [counts, { ready, parts }] = await Promise.all([counting, readinessOf(readiness)]);
  const budget = (await readBudgets(db, providers)).filter((one) => environment === undefined || one.environment === environment);
  const quietEnd = quiet.endOf(null, clock.now());
  return { ready, parts, ...counts, quiet_until: quietEnd === undefined ? null : new Date(quietEnd).toISOString(), budget };
}

function presentProofs({
  total,
  verified,
  late,
  never,
  firstProofOverdue,
  unverified,
  unavailable,
}: ProofCounts): OverviewModel['lists'] {
  return { total, verified, late, never, first_proof_overdue: firstProofOverdue, unverified, unavailable };
}

function presentExport(last: LastExport | undefined): OverviewModel['last_export'] {
  if (!last) return null;
  const { finishedAt, ...counts } = last;
  return { ...counts, finished_at: presentTime(finishedAt) };
}

/** The longest of the known times. */
function longest(
  nights: readonly { readonly environment: string; readonly seconds: number | null }[],
  environment: Environment | undefined,
): number | null {
  const known = nights.flatMap((night) =>
    night.seconds !== null && (environment ?? night.environment) === night.environment ? [night.seconds] : [],
  );
  return known.length === 0 ? null : Math.max(...known);
}

function byStatus<Status extends string>(
  counts: readonly { readonly status: Status; readonly count: number }[],
): Partial<Record<Status, number>> {
  return Object.fromEntries(counts.map(({ status, count }) => [status, count])) as Partial<Record<Status, number>>;
}
