import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { loadCatalogue } from '../../src/catalogue/load-catalogue.js';
import { systemClock } from '../../src/core/clock.js';
import type { CompanyKey } from '../../src/core/company.js';
import { Secret } from '../../src/core/secret.js';
import { inTransaction } from '../../src/db/connection/transaction.js';
import { nightlySyncs } from '../../src/runs/nightly-syncs.js';
import { Runs } from '../../src/runs/runs.js';
import { notQuiet } from '../support/quiet.js';
import { alter, DUE, EXPIRED, newCompany, oauthRoom, TESTER } from './fixture.js';
import { readStates } from './states-document.js';
import { oauthSuite } from './suite.js';

const { database, server } = await oauthSuite();
const room = oauthRoom(database.db, server);

const EVENTS: Record<string, (company: CompanyKey) => Promise<unknown>> = {
  onboarded: (company) => room.onboarding.onboard({ ...company, refreshToken: new Secret(server.issue(company.companyId)) }),
  paused: (company) => room.connections.pause(company),
  resumed: (company) => room.connections.resume(company),
  refused: (company) => room.connections.requireReauthorization(company, 'refresh_outcome_unknown'),
  regained: (company) => inTransaction(database.db, (tx) => room.connections.regain(company, tx)),
  removed: (company) => room.connections.remove(company, TESTER),
};

/** The events that lead to a state. */
const ROUTES: Record<string, string[]> = {
  none: [],
  active: ['onboarded'],
  paused: ['onboarded', 'paused'],
  reauthorization_required: ['onboarded', 'refused'],
};
const STATES = Object.keys(ROUTES).filter((state) => state !== 'none');

const { allowances, transitions } = readStates();

async function companyIn(state: string): Promise<CompanyKey> {
  const company = newCompany();
  for (const event of ROUTES[state] ?? []) await EVENTS[event]?.(company);
  return company;
}

const status = async (company: CompanyKey) => (await room.connections.find(company))?.status ?? 'none';
const yesOrNo = (yes: boolean) => (yes ? 'yes' : 'no');

describe('transitions', () => {
  test('the table names every state and event', () => {
    const wanted = ['none onboarded', ...STATES.flatMap((state) => Object.keys(EVENTS).map((event) => `${state} ${event}`))];
    expect(transitions.map(({ from, event }) => `${from} ${event}`).toSorted()).toEqual(wanted.toSorted());
  });

  test.each(transitions)('$from, $event: $to', async ({ from, event, to }) => {
    const company = await companyIn(from);
    expect(await status(company)).toBe(from);
    await EVENTS[event]?.(company).catch(() => {});
    expect(await status(company)).toBe(to);
  });

  test('only an answer that was unknown can be regained', async () => {
    const company = await companyIn('active');
    await room.connections.requireReauthorization(company, 'token_refused');
    await EVENTS['regained']?.(company);
    expect(await status(company)).toBe('reauthorization_required');
  });
});

describe('what each state allows', () => {
  test('the table names every state', () => {
    expect(allowances.map((row) => row.status)).toEqual(STATES);
  });

  test.each(allowances)('$status', async (row) => {
    const { db } = database;
    const schedule = { cron: '0 2 * * *', timezone: 'UTC', spreadMinutes: 0 };
    const runs = new Runs({
      db,
      catalogue: loadCatalogue(undefined),
      quiet: notQuiet,
      schedule,
      clock: systemClock,
      dispatcher: { dispatch: async () => {} },
    });
    const logger = pino({ enabled: false });
    const startDueSyncs = nightlySyncs({ db, runs, schedule, clock: systemClock, logger });
    const runsOf = (company: CompanyKey) => db.prisma.run.count({ where: company });

    const asking = await companyIn(row.status);
    const code = await runs.request({ company: asking, trigger: 'manual' }).then(
      () => undefined,
      (error: { code: string }) => error.code,
    );
    expect([yesOrNo(code === undefined), await runsOf(asking)]).toEqual([row.askedForSync, code === undefined ? 1 : 0]);
    if (code) expect(code).toBe(row.status === 'paused' ? 'company_paused' : 'reauthorization_required');

    const waiting = await companyIn(row.status);
    await db.prisma.connection.updateMany({ where: waiting, data: { nextSyncAt: new Date(0) } });
    await startDueSyncs();
    expect(yesOrNo((await runsOf(waiting)) > 0)).toBe(row.nightlySync);

    await alter(db, waiting, DUE);
    expect(yesOrNo((await room.manager.due(1_000)).some(({ companyId }) => companyId === waiting.companyId))).toBe(
      row.refreshedAhead,
    );

    await alter(db, waiting, EXPIRED);
    const sent = server.received.length;
    const token = await room.manager
      .sourceFor(waiting)
      .get()
      .catch(() => undefined);
    expect(yesOrNo(token !== undefined)).toBe(row.tokenOnDemand);
    expect(server.received.length - sent).toBe(row.tokenOnDemand === 'yes' ? 1 : 0);
  });

  test.each(allowances)('$status is told', async (row) => {
    const told = async (company: CompanyKey) =>
      (await database.db.prisma.notification.findMany({ where: company, orderBy: { seq: 'asc' } })).map(({ type }) => type);
    const company = await companyIn(row.status);
    expect(await told(company)).toEqual(row.told === 'reauthorization_required' ? [row.told] : []);
    if (row.told !== 'authorization_restored') return;
    for (const event of ['refused', 'refused', 'onboarded']) await EVENTS[event]?.(company).catch(() => {});
    expect(await told(company)).toEqual(['reauthorization_required', 'authorization_restored']);
  });
});
