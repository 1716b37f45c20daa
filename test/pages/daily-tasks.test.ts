import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import { ENVIRONMENTS } from '../../src/core/company.js';
import { type AdminFixture, startAdmin, TOKEN, writeChanges } from '../api/admin-fixture.js';
import { makeUnsigned, signAll, someSigner } from '../certificates/certificate-fixture.js';
import { HOME, runMuster } from '../cli/run-muster.js';
import { sweepOf } from '../runs/issue-world.js';
import { companyIdOf } from '../support/company-ids.js';
import { anyPort } from '../support/port.js';
import { type TroubleName, troubledFleet } from '../support/troubled-fleet.js';
import { hasBrowser, useBrowser } from './browser.js';
import { signIn } from './deployment.js';
import { Walker } from './walker.js';

// The eleven things that people do with Muster every day, among 300 companies with every kind of trouble. Each is done in three ways: at a desk, on a
// phone, and by the CLI. Without `DAILY_TASKS=all` only the two are done that take every click they may, so that a change breaks them first.

const MOST_CLICKS = 3;
/** Without scripts, filters have a button. */
const MOST_ON_PHONE = 4;
const PERSON = 'employees 1';

interface World {
  readonly admin: AdminFixture;
  readonly fleet: Readonly<Record<TroubleName, readonly CompanyKey[]>>;
  nameOf(company: CompanyKey): Promise<string>;
}

/** The ways share one fleet. A task that takes something away takes it from the company, or under the name, of its way. */
interface WorldOfWay extends World {
  readonly way: 0 | 1 | 2;
}

/** Its first company has a certificate of each list, and one person whose record changed. The runs that are under way are half done. */
async function makeWorld(): Promise<World> {
  const port = anyPort();
  // The night began twelve hours ago and is over, at whatever hour this runs.
  const schedule = { cron: `0 ${(new Date().getUTCHours() + 12) % 24} * * *`, timezone: 'UTC', spreadMinutes: 120 };
  const admin = await startAdmin(undefined, { port, publicUrl: new URL(`http://127.0.0.1:${port}`), schedule });
  const { db } = admin;
  const fleet = await troubledFleet(db);
  await db.pool.query('UPDATE muster.warehouse_settings SET stale_after_hours = 26');
  await sweepOf(db, { environments: ENVIRONMENTS, hasWebhook: false })();
  await makeUnsigned(db, { companies: 1, nights: 1 });
  await signAll(db, await someSigner());
  await writeChanges(db, personsCompany(fleet), [
    { id: '1', data: '{"id":"1","name":"employees 1","phone":"11 22 33 44"}' },
    { id: '1', data: '{"id":"1","name":"employees 1","phone":"55 66 77 88"}' },
  ]);
  await db.pool.query(`UPDATE muster.changes SET op = 'update' WHERE position = 1`);
  await db.prisma.walk.updateMany({
    where: { status: 'running' },
    data: { pages: 10, received: 5_000, totalRecords: 10_000 },
  });
  const nameOf = async (company: CompanyKey) => (await db.prisma.company.findFirstOrThrow({ where: { ...company } })).name!;
  return { admin, fleet, nameOf };
}

const personsCompany = (fleet: World['fleet']) => fleet.well[1]!;

interface Task {
  readonly name: string;
  /** Done without `DAILY_TASKS=all`, too. */
  readonly isInGate?: true;
  readonly walk: (walker: Walker, world: WorldOfWay) => Promise<void>;
  /** The commands that do the same, and a text that they print. */
  readonly commands: (world: WorldOfWay) => Promise<readonly (readonly [command: readonly string[], prints: RegExp])[]>;
}

const TASKS: readonly Task[] = [
  {
    name: 'why did this company fail',
    walk: async (walker, { fleet, nameOf }) => {
      const name = await nameOf(fleet.failedForDays[0]!);
      await walker.follow('Companies');
      await walker.enter('Name or id', name);
      await walker.follow(name);
      await walker.read('Your plan does not include this list.');
    },
    commands: async ({ fleet, nameOf }) => [
      [['companies', '--company', await nameOf(fleet.failedForDays[0]!)], /Your plan does not include this list\./],
    ],
  },
  {
    name: 'which companies lack a list',
    isInGate: true,
    walk: async (walker) => {
      await walker.follow('Companies');
      await walker.choose('List', 'departments');
      await walker.read(/companies lack departments or its proof/);
      await walker.follow(/^12 unavailable/);
    },
    commands: async ({ fleet, nameOf }) => [
      [['companies', '--resource', 'departments', '--state', 'unavailable'], new RegExp(await nameOf(fleet.unavailable[9]!))],
    ],
  },
  {
    name: 'what changed for an employee',
    walk: async (walker, { fleet, nameOf }) => {
      await walker.follow('Records');
      await walker.type('Company, by name or id', await nameOf(personsCompany(fleet)));
      await walker.enter('Number or name', PERSON);
      await walker.follow(PERSON);
      await walker.read('History, newest first');
      await walker.read('55 66 77 88');
    },
    commands: async ({ fleet, nameOf }) => {
      const company = await nameOf(personsCompany(fleet));
      return [
        [['records', PERSON, '--company', company], /employees 1/],
        [['records', '--company', company, '--resource', 'employees', '--id', '1'], /55 66 77 88/],
      ];
    },
  },
  {
    name: 'erase a person',
    isInGate: true,
    walk: async (walker, { fleet, nameOf, way }) => {
      await walker.follow('Records');
      await walker.type('Company, by name or id', await nameOf(fleet.well[2 + way]!));
      await walker.enter('Number or name', PERSON);
      await walker.follow(`Erase… ${PERSON}`);
      await walker.press('Erase this person');
      await walker.read('The person was erased');
    },
    commands: async ({ fleet, nameOf, way }) => [
      [['forget', '1', '--company', await nameOf(fleet.well[2 + way]!), '--resource', 'employees'], /1/],
    ],
  },
  {
    name: 'is last night complete',
    walk: (walker) => walker.read('Last night is not complete:'),
    commands: async () => [[['last-night'], /not complete/]],
  },
  {
    name: 'who must authorize, and the links for all of them',
    walk: async (walker, { fleet }) => {
      await walker.follow(/must be authorized again$/);
      await walker.press('Make the links');
      const { length } = [...fleet.mustAuthorize, ...fleet.pausedMustAuthorize];
      await walker.read(`Links for ${length} companies`);
      const file = await walker.download('Download as CSV');
      expect(
        readFileSync(await file.path(), 'utf8')
          .trimEnd()
          .split('\r\n'),
      ).toHaveLength(1 + length);
    },
    commands: async () =>
      ENVIRONMENTS.map(
        (environment) => [['connect-link', '--all', '--csv', '--environment', environment], /\/connect\//] as const,
      ),
  },
  {
    name: 'sync again what failed',
    walk: async (walker, { admin }) => {
      // No worker takes the runs that another way has requested.
      await admin.db.prisma.run.deleteMany({ where: { trigger: 'resync' } });
      await walker.follow('Sync what failed');
      await walker.press(/^Sync these \d+$/);
      await walker.read(/sync was requested|cannot be synced now/);
      expect(await admin.db.prisma.run.count({ where: { trigger: 'resync' } })).toBeGreaterThan(0);
    },
    commands: async ({ admin }) => {
      await admin.db.prisma.run.deleteMany({ where: { trigger: 'resync' } });
      return [[['sync', '--failed'], /./]];
    },
  },
  {
    name: 'approve a deletion',
    walk: async (walker) => {
      await walker.follow('Holds');
      await walker.press('Approve');
      await walker.read(/^Delete 2 of 3 rows of/);
      await walker.press('Approve');
      await walker.read(/^Approved: rows/);
    },
    commands: async ({ admin }) => {
      const hold = await admin.db.prisma.hold.findFirstOrThrow({ where: { status: 'open' } });
      return [
        [['holds'], /employees/],
        [['holds', 'approve', hold.id, '--yes'], /approved/i],
      ];
    },
  },
  {
    name: 'how far is a long run',
    walk: async (walker, { fleet, nameOf }) => {
      await walker.follow('Runs');
      await walker.choose('Status', 'running');
      await walker.read(await nameOf(fleet.reading[0]!));
      await walker.read(/50 %/);
    },
    commands: async () => [[['runs', '--status', 'running'], /50 %/]],
  },
  {
    name: 'read-only access, and back',
    walk: async (walker, { admin, way }) => {
      await walker.follow('Tokens');
      await walker.type('Name', `auditor ${way}`);
      await walker.press('Make the token');
      const token = await walker.page.getByLabel('Token', { exact: true }).inputValue();
      await walker.press('Withdraw');
      await walker.read('The token was withdrawn');
      const refused = await admin.fetch('/api/overview', { headers: { authorization: `Bearer ${token}` } });
      expect(refused.status).toBe(401);
    },
    commands: async ({ way }) => [
      [['tokens', 'add', `auditor ${way}`, '--role', 'viewer'], /./],
      [['tokens'], new RegExp(`auditor ${way}`)],
      [['tokens', 'remove', `auditor ${way}`], /./],
    ],
  },
  {
    name: 'prove a list to an auditor',
    walk: async (walker, { nameOf }) => {
      const name = await nameOf({ environment: 'test', companyId: companyIdOf(1) });
      await walker.follow('Certificates');
      await walker.enter('Company', name);
      await walker.follow(/^Show ?: employees of/);
      await walker.read(/This installation states: every record of employees/);
      const file = await walker.download('Download as JWS');
      expect(readFileSync(await file.path(), 'utf8')).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/);
    },
    commands: async ({ nameOf }) => {
      const name = await nameOf({ environment: 'test', companyId: companyIdOf(1) });
      const file = join(HOME, 'list.jws');
      return [
        [['certificates', '--company', name, '--resource', 'employees', '--output', file], /./],
        [['certificate', 'check', file], /holds?/],
      ];
    },
  },
];

const WALKED = process.env.DAILY_TASKS === 'all' ? TASKS : TASKS.filter(({ isInGate }) => isInGate);

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterAll(() => world?.admin.stop());

describe.skipIf(!hasBrowser())('the daily tasks', () => {
  const openPage = useBrowser();

  describe.each([
    { way: 0, where: 'at a desk', viewport: { width: 1440, height: 900 }, javaScriptEnabled: true },
    { way: 1, where: 'on a phone, without scripts', viewport: { width: 390, height: 844 }, javaScriptEnabled: false },
  ] as const)('$where', ({ way, where, ...options }) => {
    const isOnPhone = !options.javaScriptEnabled;
    const counted: string[] = [];
    let page: Page;
    beforeAll(async () => {
      page = await openPage(options);
      await signIn(page, world.admin.url, TOKEN);
    });
    afterAll(() => console.log(`Clicks ${where}:\n${counted.join('\n')}`));

    test.each(WALKED)('$name', async ({ name, walk }) => {
      await page.goto(world.admin.url);
      const walker = new Walker(page, isOnPhone);
      await walk(walker, { ...world, way });
      counted.push(`  ${walker.clicks} ${name}`);
      expect(walker.clicks).toBeLessThanOrEqual(isOnPhone ? MOST_ON_PHONE : MOST_CLICKS);
    });
  });
});

describe('the daily tasks by the CLI', () => {
  test.each(WALKED)('$name', async ({ commands }) => {
    for (const [args, prints] of await commands({ ...world, way: 2 })) {
      const isLocal = args[0] === 'certificate';
      const { code, stdout, stderr } = await runMuster(isLocal ? args : [...args, '--url', world.admin.url], {
        MUSTER_ADMIN_TOKEN: TOKEN,
      });
      expect([args.join(' '), stdout + stderr]).toEqual([args.join(' '), expect.stringMatching(prints)]);
      // The night of this fleet is not complete, which is the answer of the command.
      if (args[0] !== 'last-night') expect([args.join(' '), code, stderr]).toEqual([args.join(' '), 0, stderr]);
    }
  });
});
