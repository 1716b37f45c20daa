import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { parse } from 'yaml';
import type { RunModel } from '../../src/api/runs/run-model.js';
import type { Clock } from '../../src/core/clock.js';
import type { CompanyKey } from '../../src/core/company.js';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { RESOURCES, type Resource } from '../../src/sandbox/company-spec.js';
import { LESSONS } from '../../src/sandbox/lessons/registry.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { ensureTypedViews } from '../../src/warehouse/typed-views.js';
import { oauthRoom, trustTokens } from '../oauth/fixture.js';
import { TestClock } from '../sandbox/client.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { emptyTables } from '../support/empty-tables.js';
import { endpointsOf } from './company-fixture.js';
import { type SyncHarness, syncHarness } from './sync-harness.js';

type Entry = Readonly<Record<string, unknown>>;
/** The entries of the examples, with pages of at most 100 records, so that small lists have several. */
const EXAMPLES = parse(
  readFileSync(new URL('../../examples/catalogue.yaml', import.meta.url), 'utf8').replaceAll(/size: \d{3}/g, 'size: 100'),
) as Record<Resource, Entry>;
/** Each list has three pages. */
const MANY = {
  name: 'Many',
  employees: 230,
  departments: 230,
  absences: 230,
  documents: 230,
  positions: 130,
  contracts: 130,
  shifts: 130,
  notes: 130,
  payslips: 130,
  timesheets: 130,
};
/** Employees of the company whose lists have records. */
export const { employees: EMPLOYEES } = MANY;
const NONE = { name: 'None', employees: 0, departments: 0 };

/** Sleeps take no time, and yet the time passes for the service, too. */
class PassingClock extends TestClock implements Clock {
  override sleep = async (ms: number) => this.forward(ms / 1_000);
}

interface Meeting {
  /** What is added to the list's entry, as YAML; what the lesson prints unless said. */
  readonly printed?: string | undefined;
  /** Whether the list was read before the lesson. */
  readonly isKnown?: boolean;
}

export interface Seen {
  readonly run: RunModel;
  readonly walk: RunModel['walks'][number];
  readonly company: CompanyKey;
  readonly harness: SyncHarness;
  /** The list's walk in another run. */
  again(): Promise<RunModel['walks'][number]>;
}

/** A sandbox and a mirror in which lessons are met. Each test begins with nothing mirrored and no lesson. */
export class LessonWorld {
  readonly clock = new PassingClock();
  sandbox!: Sandbox;
  database!: TestDatabase;
  readonly #harnesses = new Map<string, SyncHarness>();

  constructor() {
    beforeAll(() => this.#open());
    afterAll(() => this.#close());
    beforeEach(() => this.begin());
  }

  /** Nothing is mirrored, and no lesson is on. */
  async begin(): Promise<void> {
    this.sandbox.reset();
    const kept = ['connections', 'lists', 'runs', 'walks', 'holds'].map((name) => `muster.${name}`);
    const tables = [...kept, ...['companies', ...RESOURCES].map((name) => `mirror.${name}`)];
    await emptyTables(this.database.db, ...tables);
  }

  /** Begins a lesson as `muster sandbox break` does. */
  break(name: string, { companyId }: CompanyKey, resource?: Resource): void {
    this.sandbox.lessons.break(name, { companyId, resource });
  }

  /** Begins the lesson and has its list mirrored. */
  async meet(name: string, resource: Resource, options: Meeting = {}): Promise<Seen> {
    const { records, entry } = LESSONS.get(name)!;
    const { printed = entry, isKnown = false } = options;
    const harness = this.#harness(`${resource} ${printed}`, () =>
      syncHarness(this.database.db, this.sandbox, endpointsOf({ [resource]: entryOf(resource, printed) }), { clock: this.clock }),
    );
    const company = await harness.onboard(this.sandbox.companies[records === 'none' ? 0 : 1]!.companyId);
    const sync = () => harness.sync(company, { mode: 'full' });
    if (isKnown) requireProved(await sync());
    this.break(name, company, resource);
    const run = await sync();
    return { run, walk: run.walks[0]!, company, harness, again: async () => (await sync()).walks[0]! };
  }

  /** Lets the run go on whenever it is due, until it ends. */
  async atLast({ run, harness }: Pick<Seen, 'run' | 'harness'>): Promise<RunModel> {
    let now = run;
    while (now.status === 'queued') {
      this.clock.forward(46);
      await this.database.db.prisma.run.update({ where: { id: run.id }, data: { startAfter: new Date(0) } });
      now = await harness.work(run.id);
    }
    return now;
  }

  /** A company whose tokens Muster keeps and refreshes itself. */
  async authorized({ isKnown = true }: Pick<Meeting, 'isKnown'> = {}) {
    const { db } = this.database;
    const { url, clientId, clientSecret, companies, issueRefreshToken } = this.sandbox;
    const company: CompanyKey = { environment: 'test', companyId: companies[1]!.companyId };
    await trustTokens(db);
    const room = oauthRoom(db, { url, clientId, clientSecret: clientSecret.reveal() });
    await room.onboarding.onboard({ ...company, refreshToken: issueRefreshToken(company.companyId) });
    const provider = { url, tokens: room.manager.sourceFor(company) };
    const { employees, departments } = EXAMPLES;
    const harness = this.#harness(`authorized ${this.#harnesses.size}`, () =>
      syncHarness(db, provider, endpointsOf({ employees, departments }), { clock: this.clock }),
    );
    const sync = () => harness.sync(company, { mode: 'full' });
    if (isKnown) requireProved(await sync());
    const status = async () => {
      const row = await room.connections.find(company);
      return [row!.status, row!.reauthorizationReason];
    };
    return { company, harness, sync, status };
  }

  sizeOf({ companyId }: CompanyKey, resource: Resource): number {
    return this.sandbox.records(companyId, resource).length;
  }

  #harness(key: string, make: () => SyncHarness): SyncHarness {
    const harness = this.#harnesses.get(key) ?? make();
    this.#harnesses.set(key, harness);
    return harness;
  }

  async #open(): Promise<void> {
    this.sandbox = await startSandbox({ clock: this.clock, companies: [NONE, MANY] });
    this.database = await testDatabase();
    const catalogue = { endpoints: endpointsOf(EXAMPLES), get: () => undefined };
    await ensureMirrorTables(this.database.db, catalogue);
    await ensureTypedViews(this.database.db, catalogue);
  }

  async #close(): Promise<void> {
    for (const harness of this.#harnesses.values()) await harness.close();
    await this.sandbox.stop();
    await this.database.close();
  }
}

/** The list's entry as a person has it who added what the lesson prints. */
function entryOf(resource: Resource, printed?: string): Entry {
  const entry = EXAMPLES[resource];
  const added = parse(printed ?? '{}') as { fields?: Entry };
  return { ...entry, ...added, ...(added.fields && { fields: { ...(entry['fields'] as Entry), ...added.fields } }) };
}

function requireProved({ status, walks }: RunModel): void {
  if (status !== 'succeeded' || walks.some(({ verified }) => !verified))
    throw new Error('The lists were not proved before the lesson.');
}
