import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { systemClock } from '../../src/core/clock.js';
import type { CompanyKey, Environment } from '../../src/core/company.js';
import type { StaleAfterHours } from '../../src/core/stale-after.js';
import type { Database } from '../../src/db/connection/database.js';
import { issueSweep } from '../../src/runs/issues.js';

const RESOURCES = ['employees', 'departments'];
const HOUR_MS = 3_600_000;

export const hoursAgo = (hours: number) => new Date(Date.now() - hours * HOUR_MS);

/** A company whose lists were proved an hour ago, in their walks, too, unless `lists` says otherwise. */
export async function addCompany(
  db: Database,
  {
    environment = 'test',
    paused = false,
    reauthorizationReason = null,
    lists = {},
  }: {
    environment?: Environment;
    paused?: boolean;
    reauthorizationReason?: string | null;
    lists?: Readonly<
      Record<
        string,
        { provedHoursAgo?: number | null; begunHoursAgo?: number; unverifiedHours?: number; unavailableHours?: number }
      >
    >;
  } = {},
): Promise<CompanyKey> {
  const company: CompanyKey = { environment, companyId: randomUUID() };
  await db.prisma.connection.create({ data: { ...company, paused, reauthorizationReason, createdAt: hoursAgo(1_000) } });
  for (const resource of RESOURCES) {
    const { provedHoursAgo = 1, begunHoursAgo = 0, unverifiedHours, unavailableHours } = lists[resource] ?? {};
    await db.prisma.list.create({
      data: {
        ...company,
        resource,
        begunAt: hoursAgo(begunHoursAgo),
        lastVerifiedAt: provedHoursAgo === null ? null : hoursAgo(provedHoursAgo),
        unverifiedSince: unverifiedHours === undefined ? null : hoursAgo(unverifiedHours),
        unavailableSince: unavailableHours === undefined ? null : hoursAgo(unavailableHours),
      },
    });
  }
  await addWalk(db, company);
  return company;
}

/** A run of the company, of one list, that ended so: with the error `code`, or without one. */
export async function addWalk(
  db: Database,
  company: CompanyKey,
  { resource = 'employees', code, hours = 1 }: { resource?: string; code?: string; hours?: number } = {},
): Promise<void> {
  const status = code === undefined ? 'succeeded' : 'failed';
  const finishedAt = hoursAgo(hours);
  const error = code === undefined ? {} : { error: { code, message: 'canary message' } };
  await db.prisma.run.create({
    data: {
      ...company,
      trigger: 'nightly',
      mode: 'full',
      status,
      finishedAt,
      ...error,
      walks: { create: [{ ...company, resource, position: 0, status, finishedAt, verified: code === undefined, ...error }] },
    },
  });
}

/** A sweep for issues as a worker makes it, or the API in its place; it rests as long as it likes between two calls. `hour`: that of the day by its clock. */
export function sweepOf(
  db: Database,
  {
    hour,
    staleAfterHours = 26,
    isWorker = true,
    hasWebhook = true,
    environments = ['test'],
  }: {
    hour?: number;
    staleAfterHours?: StaleAfterHours;
    isWorker?: boolean;
    hasWebhook?: boolean;
    environments?: readonly Environment[];
  } = {},
) {
  const catalogue = { endpoints: RESOURCES.map((resource) => ({ resource })), get: () => undefined } as never;
  const schedule = { cron: '0 2 * * *', timezone: 'UTC', spreadMinutes: 120 };
  const now = () => (hour === undefined ? systemClock.now() : Date.UTC(2026, 10, 24) + hour * HOUR_MS);
  const logger = pino({ level: 'silent' });
  return () =>
    issueSweep({
      db,
      catalogue,
      exports: { to: '/', format: 'csv' },
      schedule,
      staleAfterHours,
      providers: Object.fromEntries(environments.map((environment) => [environment, {}])),
      isWorker,
      webhook: hasWebhook ? {} : undefined,
      clock: { ...systemClock, now },
      logger,
    })();
}
