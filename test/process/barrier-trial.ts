import { expect } from 'vitest';
import { upstream } from '../support/mirror-comparison.js';
import type { TestProcess } from '../support/process.js';
import { waitFor } from '../support/wait-for.js';
import { isLearned } from '../warehouse/warehouse-fixture.js';
import { Deployment } from './deployment.js';

const WORKERS = 4;
const LISTS = ['employees', 'departments'] as const;
const entry = (method: string, path: string, where: string) => ({
  method,
  path: `/api/${path}`,
  pager: { style: 'skip-take', in: where, ...(where === 'query' && { takeName: '$take' }), size: 50 },
});
const CATALOGUE = {
  employees: entry('GET', 'companies/{company_id}/employees', 'query'),
  departments: entry('POST', 'v2.0/companies/{company_id}/departments/list', 'body'),
};

interface BarrierRow {
  readonly number: string;
  readonly company_id: string;
  readonly resource: string;
  readonly seq: string;
  readonly records: number;
  readonly run_id: string;
}

interface ChangeRow {
  readonly seq: string;
  readonly company_id: string;
  readonly resource: string;
  readonly id: string;
  readonly op: string;
  readonly data: string | null;
}

/** Somebody who may read schemas mirror and warehouse, and loads what is there as it comes: changes up to a barrier, and never behind it. */
class Consumer {
  readonly #deployment: Deployment;
  readonly #lists = new Map<string, Map<string, string>>();
  #pending: ChangeRow[] = [];
  #after = '0';
  #barrier = '0';
  /** What it had of a list at each barrier, by run and resource. */
  readonly loaded = new Map<string, readonly string[]>();

  constructor(deployment: Deployment) {
    this.#deployment = deployment;
  }

  /** Loads to the next few barriers. Returns whether there was any. */
  async read(): Promise<boolean> {
    const barriers = await this.#query<BarrierRow>(
      'SELECT number, company_id, resource, seq, records, run_id FROM warehouse.barriers WHERE number > $1 ORDER BY number LIMIT 5',
      [this.#barrier],
    );
    for (const barrier of barriers) {
      while (BigInt(this.#after) < BigInt(barrier.seq)) await this.#fetch();
      this.#load(barrier);
      this.#barrier = barrier.number;
    }
    return barriers.length > 0;
  }

  async #fetch(): Promise<void> {
    const changes = await this.#query<ChangeRow>(
      'SELECT seq, company_id, resource, id, op, data::text FROM mirror.changes WHERE seq > $1 ORDER BY seq LIMIT 37',
      [this.#after],
    );
    if (changes.length === 0) throw new Error(`A barrier is beyond ${this.#after}, the end of the feed`);
    this.#pending.push(...changes);
    this.#after = changes.at(-1)!.seq;
  }

  #load({ company_id, resource, seq, records, run_id }: BarrierRow): void {
    const isOf = (change: ChangeRow) =>
      change.company_id === company_id && change.resource === resource && BigInt(change.seq) <= BigInt(seq);
    const name = `${company_id} ${resource}`;
    const rows = this.#lists.get(name) ?? new Map<string, string>();
    this.#lists.set(name, rows);
    for (const { id, op, data } of this.#pending.filter(isOf)) {
      if (op === 'delete') rows.delete(id);
      else rows.set(id, data!);
    }
    this.#pending = this.#pending.filter((change) => !isOf(change));
    if (rows.size !== records)
      throw new Error(`The barrier of run ${run_id} says ${records} records, and there are ${rows.size}`);
    this.loaded.set(`${run_id} ${resource}`, [...rows.values()].toSorted());
  }

  async #query<Row extends object>(text: string, values: readonly unknown[]): Promise<Row[]> {
    return (await this.#deployment.database.db.pool.query<Row>(text, [...values])).rows;
  }
}

/**
 * Lets four worker processes walk companies whose lists change between any two walks, and somebody load to barriers meanwhile: at each of them the
 * loader must have what the walk received. `kills`: a worker is killed in every night. Returns at how many.
 */
export async function tryBarriers({
  companies,
  nights,
  kills,
}: {
  readonly companies: number;
  readonly nights: number;
  readonly kills: boolean;
}): Promise<number> {
  const deployment = await Deployment.open({
    catalogue: CATALOGUE,
    sandbox: {
      companies: Array.from({ length: companies }, (_, n) => ({ name: `Kai ${n}`, employees: 120 + 40 * n, departments: 9 + n })),
    },
  });
  const { sandbox } = deployment;
  await deployment.startApi();
  const workers: TestProcess[] = await Promise.all(Array.from({ length: WORKERS }, () => deployment.startWorker()));
  const received = new Map<string, readonly string[]>();
  let isGivenUp = false;
  let replacing = Promise.resolve();
  const night = async (companyId: string, n: number, company: number) => {
    if (isGivenUp) return;
    if (n === 0) await deployment.onboard(companyId);
    else {
      changeLists(deployment, companyId, n + company);
      await deployment.call('POST', `/api/companies/test/${companyId}/sync`, { mode: 'full' });
    }
    if (kills && company === n % companies) await (replacing = replacing.then(() => replace(n % WORKERS)));
    const { id, status, walks } = await deployment.runEnd(companyId);
    expect([status, ...walks.map(({ verified }) => verified)]).toEqual(['succeeded', true, true]);
    for (const resource of LISTS) received.set(`${id} ${resource}`, upstream(sandbox, resource, companyId));
  };
  /** One at a time: two that replace the same worker would leave one of theirs behind. */
  const replace = async (at: number) => {
    workers[at]!.kill('SIGKILL');
    await workers[at]!.exit;
    workers[at] = await deployment.startWorker();
  };
  let isOver = false;
  const written = sandbox.companies.map(async ({ companyId }, company) => {
    for (let n = 0; n < nights; n += 1) await night(companyId, n, company);
  });
  const writing = Promise.all(written).finally(() => (isOver = true));
  try {
    const consumer = new Consumer(deployment);
    const loading = waitFor(
      async () => {
        while (await consumer.read());
        return isOver && consumer.loaded.size >= received.size;
      },
      { timeoutMs: 3_600_000 },
    );
    await Promise.all([writing, loading]);
    expect(received.size).toBe(companies * nights * LISTS.length);
    expect([...consumer.loaded.keys()].toSorted()).toEqual([...received.keys()].toSorted());
    for (const [walk, rows] of received) expect(consumer.loaded.get(walk), walk).toEqual(rows);
    // A barrier does not wait for columns: the workers learn new keys while walks go on, and rest in between.
    await waitFor(() => isLearned(deployment.database.db), { intervalMs: 250, what: 'every column' });
    await compareViews(deployment, received);
    if (!kills) for (const { stderr } of workers) expect(stderr).toMatch(/run succeeded/);
    return received.size;
  } finally {
    // A night that is under way may start a worker.
    isGivenUp = true;
    await Promise.allSettled(written);
    await deployment.close();
  }
}

/** What a service does in a day: records come, go and change; now and then nothing. */
function changeLists({ sandbox }: Deployment, companyId: string, day: number): void {
  if (day % 4 === 3) return;
  for (const resource of LISTS) {
    const list = sandbox.list(companyId, resource);
    for (let n = 0; n < 5; n += 1) list.change(n);
    list.remove(day % 7, 1);
    list.insert(day % 5);
    if (day % 3 === 0) list.insert(0);
  }
}

/** The row of a view, without what only one of the views has. */
type TypedRow = Readonly<Record<string, unknown>>;

/**
 * At every barrier as_of_seq must give what the walk received; and the same as the changes since the barrier before, applied to what it gave there.
 */
async function compareViews(deployment: Deployment, received: ReadonlyMap<string, readonly string[]>): Promise<void> {
  const { pool } = deployment.database.db;
  const { rows: barriers } = await pool.query<BarrierRow>(
    'SELECT number, company_id, resource, seq, records, run_id FROM warehouse.barriers ORDER BY number',
  );
  const known = new Map<string, { readonly seq: string; readonly state: ReadonlyMap<string, TypedRow> }>();
  for (const { company_id, resource, seq, run_id } of barriers) {
    const { rows: then } = await pool.query<{ row: TypedRow }>(
      `SELECT to_jsonb(v) AS row FROM warehouse.${resource}_as_of_seq($1) v WHERE company_id = $2`,
      [seq, company_id],
    );
    const state = new Map(then.map(({ row }) => [row['id'] as string, withoutOwn(row)]));
    const walk = `${run_id} ${resource}`;
    expect(textsOf([...state.values()]), walk).toEqual(textsOf(received.get(walk)!.map((text) => JSON.parse(text) as TypedRow)));
    const list = `${company_id} ${resource}`;
    const before = known.get(list) ?? { seq: '0', state: new Map<string, TypedRow>() };
    const { rows: changes } = await pool.query<{ row: TypedRow }>(
      `SELECT to_jsonb(v) AS row FROM warehouse.${resource}_changes v WHERE _seq > $1 AND _seq <= $2 AND company_id = $3 ORDER BY _seq`,
      [before.seq, seq, company_id],
    );
    const folded = new Map(before.state);
    for (const { row } of changes) {
      if (row['_op'] === 'delete') folded.delete(row['id'] as string);
      else folded.set(row['id'] as string, withoutOwn(row));
    }
    expect(folded, walk).toEqual(state);
    known.set(list, { seq, state });
  }
}

function withoutOwn(row: TypedRow): TypedRow {
  return Object.fromEntries(Object.entries(row).filter(([name]) => name === '_rest' || !name.startsWith('_')));
}

/** The id and the numbers and texts of each record that a typed column shows as they were sent. */
function textsOf(rows: readonly TypedRow[]): string[] {
  return rows
    .map((row) =>
      JSON.stringify([
        row['uid'] ?? row['id'],
        row['employeeNumber'] ?? row['employee_number'],
        row['lastName'] ?? row['last_name'],
        row['name'],
      ]),
    )
    .toSorted();
}
