import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PAGES } from '../../src/dashboard/page-routes.js';
import { PageClient } from '../dashboard/page-client.js';
import { Deployment } from '../process/deployment.js';
import { testDatabase } from '../support/database.js';
import { everyAddress, everyPage, nextCursor, withQuery } from '../support/every-address.js';
import { fillLarge, largeValues } from '../support/large-database.js';
import { type StatementTap, type TappedStatement, tapStatements } from '../support/statement-tap.js';

// Every statement that the API sends for any list, call or page is planned once more, in the order and under the settings in which it was sent. The
// addresses are made of the OpenAPI document and of the pages themselves, so that none is forgotten.

/**
 * Without `ADDRESSES=all` no two filters are asked for together, but all of a list; and a page is opened with one value of each filter, since the list
 * of the API, of which it is made, is asked for with every value.
 */
const ASKS_ALL = process.env.ADDRESSES === 'all';
/** A table with so many rows is large: nothing may read it from its beginning. */
const LARGE_ROWS = 900;
/** From the sixth on, PostgreSQL may take a plan that fits every value: a statement is planned so often at first, and once for each of its values later. */
const TIMES = 6;

let deployment: Deployment;
let tap: StatementTap;
let large: ReadonlySet<string>;
let stop: (() => Promise<void>) | undefined;

beforeAll(async () => {
  const database = await testDatabase();
  const { pool } = database.db;
  await fillLarge(pool, {
    companies: 10_000,
    nights: 6,
    issues: 5_000,
    auditEntries: 40_000,
    notifications: 20_000,
    holds: 10_000,
  });
  const { rows } = await pool.query<{ name: string }>(
    `SELECT relnamespace::regnamespace || '.' || relname AS name FROM pg_class WHERE relkind = 'r' AND reltuples >= ${LARGE_ROWS}`,
  );
  large = new Set(rows.map(({ name }) => name));
  tap = await tapStatements(database.url);
  deployment = await Deployment.open({ database, env: { DATABASE_URL: tap.url } });
  const api = await deployment.startApi();
  stop = async () => {
    api.kill('SIGTERM');
    await api.exit;
    await tap.close();
    await deployment.close();
  };
});

afterAll(() => stop?.());

/** The page of a record without an id in its path has it in its query. */
const RECORD = '/records/:environment/:company_id/:resource';
const OPENED = [...Object.keys(PAGES).map((page) => (page === RECORD ? `${RECORD}?id=1` : page)), '/settings'];

/** Every address, and how many statements had been sent before it. */
async function askForAll(): Promise<Map<string, number>> {
  const values = await largeValues(deployment.database.db.pool);
  const document = JSON.parse(await deployment.raw('/api/openapi.json'));
  const pages = await PageClient.signedIn(deployment.url, deployment.adminToken);
  const asked = new Map<string, number>();
  function ask(address: string, read: (address: string) => Promise<string>): Promise<string> {
    asked.set(address, tap.statements.length);
    return read(address);
  }
  for (const address of everyAddress(document, values, { pairs: ASKS_ALL })) {
    const cursor = nextCursor(await ask(address, (path) => deployment.raw(path)));
    if (cursor) await ask(withQuery(address, { cursor }), (path) => deployment.raw(path));
  }
  // A sync is of an issue or of a state, and a page refuses both at once.
  for (const address of everyPage(OPENED, document, values, { everyValue: ASKS_ALL }).filter(
    (each) => !/^\/syncs\?issue_id=.*&/.test(each),
  ))
    await ask(address, async (path) => {
      const { status, html } = await pages.open(path);
      expect([path, status]).toEqual([path, 200]);
      return html;
    });
  return asked;
}

interface Plan {
  readonly 'Node Type': string;
  readonly Schema?: string;
  readonly 'Relation Name'?: string;
  readonly Plans?: readonly Plan[];
}

/** Tables that the plan reads from their beginning. */
function scannedBy(plan: Plan): string[] {
  const own = plan['Node Type'] === 'Seq Scan' ? [`${plan.Schema}.${plan['Relation Name']}`] : [];
  return [...own, ...(plan.Plans ?? []).flatMap(scannedBy)];
}

/** Sets or ends something for the statements behind it. */
const SETTING = /^\s*(BEGIN|COMMIT|ROLLBACK|SET)\b|\bset_config\(/i;
const PLANNED = /^\s*(SELECT|WITH|INSERT|UPDATE|DELETE)\b/i;

/** Settings decide on plans, and those of time do not. */
const IN_FORCE = `SELECT string_agg(name || ' ' || setting, ' ' ORDER BY name) AS settings FROM pg_settings WHERE source = 'session' AND name !~ 'timeout'`;

/**
 * Plans what the connections of a process sent, one connection after the other, all of them in one session. What sets something is executed, and all
 * else is not. A statement is prepared once for all connections that send it under the same settings.
 */
class Planner {
  readonly #client = new pg.Client(deployment.database.url);
  readonly #prepared = new Map<string, string>();
  readonly #planned = new Set<string>();
  #connection: number | undefined;
  #settings: string | undefined;

  connect(): Promise<unknown> {
    return this.#client.connect();
  }

  close(): Promise<void> {
    return this.#client.end();
  }

  /** Has the statements that follow on its connection planned under the settings that this one makes. */
  async set({ connection, text, values }: TappedStatement): Promise<void> {
    if (connection !== this.#connection) await this.#change('ROLLBACK; RESET ALL');
    this.#connection = connection;
    if (SETTING.test(text)) await this.#change(text, values);
  }

  /** The tables that the statement reads from their beginning. */
  async scans({ text, values }: TappedStatement): Promise<Set<string>> {
    if (SETTING.test(text) || !PLANNED.test(text)) return new Set();
    return new Set((await this.#plans(text, values)).flatMap(scannedBy));
  }

  async #change(text: string, values: TappedStatement['values'] = []): Promise<void> {
    await this.#client.query(text, [...values]);
    this.#settings = undefined;
  }

  /** Those of values that were not planned before. */
  async #plans(text: string, values: TappedStatement['values']): Promise<Plan[]> {
    this.#settings ??= (await this.#client.query<{ settings: string | null }>(IN_FORCE)).rows[0]!.settings ?? '';
    const statement = JSON.stringify([this.#settings, text]);
    const list = values.map((value) => (value === null ? 'NULL' : pg.escapeLiteral(value))).join(', ');
    if (this.#planned.has(statement + list)) return [];
    this.#planned.add(statement + list);
    const isNew = !this.#prepared.has(statement);
    const name = this.#prepared.get(statement) ?? `statement_${this.#prepared.size}`;
    if (isNew) await this.#client.query(`PREPARE ${name} AS ${text}`);
    this.#prepared.set(statement, name);
    const plans: Plan[] = [];
    // A session plans other values of a statement that it knows as it would the next time, however often it was asked before.
    for (let i = isNew ? TIMES : 1; i > 0; i--) {
      const { rows } = await this.#client.query<{ 'QUERY PLAN': { Plan: Plan }[] }>(
        `EXPLAIN (FORMAT JSON, VERBOSE) EXECUTE ${name}${list && `(${list})`}`,
      );
      plans.push(...rows[0]!['QUERY PLAN'].map(({ Plan: plan }) => plan));
    }
    return plans;
  }
}

test('no list, call or page reads a large table from its beginning', async () => {
  expect([...large]).toEqual(
    expect.arrayContaining([
      'muster.runs',
      'muster.walks',
      'muster.lists',
      'muster.connections',
      'mirror.companies',
      'muster.audit',
    ]),
  );
  const asked = [...(await askForAll())];
  const { statements } = tap;
  expect(asked.length).toBeGreaterThan(200);
  const planner = new Planner();
  const faults = new Map<string, string>();
  await planner.connect();
  try {
    for (const [n, statement] of [...statements.entries()].toSorted(([, one], [, other]) => one.connection - other.connection)) {
      await planner.set(statement);
      const address = asked.findLast(([, before]) => before <= n)?.[0];
      // Before the first one stands what the process does when it starts.
      if (address === undefined) continue;
      for (const table of await planner.scans(statement)) {
        const fault = `${table} by: ${statement.text.replaceAll(/\s+/g, ' ').trim()}`;
        if (large.has(table) && !faults.has(fault)) faults.set(fault, address);
      }
    }
  } finally {
    await planner.close();
  }
  expect(Object.fromEntries(faults)).toEqual({});
});
