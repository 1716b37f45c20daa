import type { RunModel } from '../../src/api/runs/run-model.js';
import type { Endpoint } from '../../src/catalogue/endpoint.js';
import type { CompanyKey } from '../../src/core/company.js';
import { isMusterError, MusterError } from '../../src/core/errors.js';
import type { Database } from '../../src/db/connection/database.js';
import { inTransaction } from '../../src/db/connection/transaction.js';
import { removeCompany } from '../../src/erasure/company-removal.js';
import type { ApiRequest } from '../../src/http/api-client.js';
import { approveHold, rejectHold } from '../../src/mirror/holds.js';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { rekeyList } from '../../src/mirror/rekey.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { randomOf } from '../pagers/shifting-list.js';
import { ENTRIES, endpointsOf } from '../walks/company-fixture.js';
import { type SyncHarness, syncHarness } from '../walks/sync-harness.js';
import { CompanyModel, type ModelResource, RESOURCES } from './company-model.js';
import { draw, type Random } from './draw.js';

/** What an operator may do at any moment, and what time does to checkpoints; each as often as its weight. */
const ACTIONS = { request: 8, cancel: 7, approve: 6, rekey: 4, age: 4, reject: 3, remove: 2 };
type Action = keyof typeof ACTIONS;

const MIXED = { work: 50, act: 34, change: 8, freeze: 6, comeBack: 2, takeOver: 0, workOnTasks: 0, leave: 0, workUndisturbed: 0 };
type Step = keyof typeof MIXED;
/** Seeds take turns: a little of everything, many runs that take over cancelled ones, many holds. */
const PROFILES = [MIXED, { ...MIXED, takeOver: 45, workOnTasks: 45 }, { ...MIXED, leave: 48, workUndisturbed: 32 }];

/** What befalls the requests of one piece of work: each in so many of a hundred. */
interface Disturbance {
  readonly changes: number;
  readonly actions: number;
  readonly failures: number;
  readonly failure: 'service_unreachable' | 'service_refused';
}
const NONE: Disturbance = { changes: 0, actions: 0, failures: 0, failure: 'service_unreachable' };

/** Editions of one catalogue that differ in the size of their pages: neither goes on from a checkpoint of the other. */
const EDITIONS = [editionOf(7, 5, 7, 3), editionOf(10, 4, 5, 4)];

function editionOf(employees: number, departments: number, documents: number, tasks: number): readonly Endpoint[] {
  const sized = (entry: { readonly pager: object }, size: number) => ({ ...entry, pager: { ...entry.pager, size } });
  const path = '/api/companies/{company_id}/departments/{id}/tasks';
  return endpointsOf({
    employees: sized(ENTRIES.employees, employees),
    departments: sized(ENTRIES.departments, departments),
    documents: sized(ENTRIES.documents, documents),
    tasks: { method: 'GET', path, parent: 'departments', pager: { style: 'skip-take', in: 'query', size: tasks } },
  });
}

/** The worker `slow` may be frozen; by the time it wakes up, `quick` and the operator have gone on. */
type WorkerName = 'slow' | 'quick';

/** The slow worker stands still before its next request but so many, until it is thawed. */
interface Freeze {
  requestsLeft: number;
  readonly frozen: Gate;
  readonly thawed: Gate;
}

/**
 * A company of which a seed decides what becomes: how its lists change, which worker walks them and how far, what befalls the requests,
 * and what the operator does meanwhile. One thing is done at a time, except within a walk and while a worker is frozen.
 */
export class OperatedCompany {
  readonly company: CompanyKey;
  readonly model: CompanyModel;
  readonly #workers: readonly Readonly<Record<WorkerName, SyncHarness>>[];
  #history: string;
  #disturbance = NONE;
  #freeze: Freeze | undefined;
  #isOperatorBusy = false;
  /** What befalls requests under way; it goes on when nobody waits for them any more. */
  #encounters: Promise<void>[] = [];

  private constructor(
    private readonly db: Database,
    private readonly sandbox: Sandbox,
    private readonly random: Random,
    private readonly weights: Readonly<Record<Step, number>>,
    { seed, etags }: { readonly seed: number; readonly etags: boolean },
  ) {
    const { environment, companyId } = sandbox.companies[0]!;
    this.#history = `seed ${seed}${etags ? ', with ETags' : ''}`;
    this.company = { environment, companyId };
    this.model = new CompanyModel(sandbox, companyId, random);
    this.#workers = EDITIONS.map((endpoints) => {
      const worker = (name: WorkerName) =>
        syncHarness(db, sandbox, endpoints, {
          worker: name,
          etags,
          beforeRequest: (request) => {
            const encounter = this.#meet(name, request);
            this.#encounters.push(encounter);
            return encounter;
          },
          respond: (request) => this.model.answer(request),
        });
      return { slow: worker('slow'), quick: worker('quick') };
    });
  }

  static async open(db: Database, seed: number): Promise<OperatedCompany> {
    const random = randomOf(seed * 104_729);
    const etags = random(2) === 0;
    const companies = [{ name: `Seed ${seed}`, employees: 34, departments: 14, documents: 30 }];
    const sandbox = await startSandbox({ etags, companies });
    const opened = new OperatedCompany(db, sandbox, random, PROFILES[seed % PROFILES.length]!, { seed, etags });
    await ensureMirrorTables(db, { endpoints: EDITIONS[0]!, get: () => undefined });
    await opened.#worker('quick').onboard(opened.company.companyId);
    return opened;
  }

  /** The steps so far, and what was done in them, for the message of a failure. */
  get history(): string {
    return this.#history;
  }

  async close(): Promise<void> {
    for (const { slow, quick } of this.#workers) await Promise.all([slow.close(), quick.close()]);
    await this.sandbox.stop();
  }

  /** One step, and all that it set going. Throws with the history before what went wrong. */
  async step(number: number): Promise<void> {
    const decides = this.#happens(30) && (await this.#openHolds()).length > 0;
    const step = decides ? 'decide' : draw(this.random, this.weights);
    this.#history += `\n${number}. ${step}`;
    try {
      await this.#steps[step]();
    } catch (cause) {
      throw new Error(this.#history, { cause });
    }
    this.#disturbance = NONE;
    this.sandbox.faults.clear();
    await Promise.allSettled(this.#encounters.splice(0));
  }

  /** Nothing moves any more, and full runs follow each other until a person has approved everything that they held. The last of them. */
  async settle(): Promise<RunModel> {
    await this.#cancelActive();
    let run: RunModel;
    do {
      run = await this.#worker('quick').sync(this.company, { mode: 'full' });
    } while (await this.#approveAll());
    return run;
  }

  readonly #actions: Readonly<Record<Action, () => Promise<void>>> = {
    cancel: async () => {
      const id = await this.#activeRun();
      if (id === undefined) return;
      await this.#worker('quick').runs.cancel(id);
      this.#note('cancelled');
    },
    approve: async () => this.#decide('approve'),
    reject: async () => this.#decide('reject'),
    rekey: async () => {
      const resource = RESOURCES[this.random(RESOURCES.length)]!;
      await this.#attempt(`rekey ${resource}`, rekeyList(this.db, { ...this.company, resource }));
    },
    age: async () => {
      const sql = `UPDATE muster.walks SET checkpoint_at = checkpoint_at - interval '7 hours' WHERE company_id = $1`;
      await this.db.pool.query(sql, [this.company.companyId]);
      this.#note('checkpoints are 7 hours older');
    },
    request: async () => void (await this.#request()),
    remove: async () => {
      await inTransaction(this.db, (tx) => removeCompany(tx, this.company, { name: 'operator', role: 'operator' }));
      await this.#worker('quick').onboard(this.company.companyId);
      this.#note('removed and onboarded again');
    },
  };

  readonly #steps: Readonly<Record<Step | 'decide', () => Promise<void>>> = {
    act: () => this.#act(ACTIONS),
    decide: () => this.#act({ approve: 3, reject: 1 }),
    work: () => this.#work(this.#anyDisturbance(), 70),
    workUndisturbed: () => this.#work(NONE, 30),
    change: async () => {
      for (let n = this.random(4); n >= 0; n -= 1) this.#note(this.model.change());
    },
    leave: async () => {
      this.#note(this.model.change(draw(this.random, { employees: 1, departments: 1, documents: 1 }), 'leaveMany'));
      await this.#work(NONE, 30);
    },
    comeBack: async () => this.#note(this.model.bringBackDepartments()),
    freeze: () => this.#freezeAndOvertake(),
    takeOver: async () => {
      await this.#cancelActive();
      await this.#request('resume', RESOURCES);
      if (this.random(4) === 0) await this.#actions.age();
      if (this.random(6) === 0) await this.#actions.rekey();
      if (this.random(2) === 0) await this.#steps.change();
      await this.#work(this.#anyDisturbance(), 50);
    },
    // Half-way through the tasks of parents among whom others have joined; the next run walks the parents, too, before it goes on.
    workOnTasks: async () => {
      await this.#cancelActive();
      this.#note(this.model.bringBackDepartments());
      this.#note(this.model.change('departments', 'join'));
      await this.#request('full', ['tasks']);
      await this.#work(NONE, 90);
      await this.#cancelActive();
      await this.#request('resume', RESOURCES);
      await this.#work(NONE, 30);
    },
  };

  /** What befalls a worker's request before the service has it. */
  async #meet(worker: WorkerName, { path }: ApiRequest): Promise<void> {
    // The company's own record is of no list.
    if (path.endsWith(this.company.companyId)) return;
    if (worker === 'slow' && this.#freeze && this.#freeze.requestsLeft-- <= 0) {
      const { frozen, thawed } = this.#freeze;
      frozen.open();
      await thawed.opened;
    }
    const { changes, actions, failures, failure } = this.#disturbance;
    if (this.#happens(changes)) this.#note(this.model.change());
    if (this.#happens(actions) && !this.#isOperatorBusy) {
      this.#isOperatorBusy = true;
      await this.#act(ACTIONS).finally(() => {
        this.#isOperatorBusy = false;
      });
    }
    if (this.#happens(failures)) throw new MusterError(failure, 'a disturbance', { details: { status: 403 } });
  }

  async #act(weights: Partial<Record<Action, number>>): Promise<void> {
    await this.#actions[draw(this.random, weights)]();
  }

  /** A worker goes on with the active run, or a new one; in so many of a hundred cases it lets go of it half-way. */
  async #work(disturbance: Disturbance, stops: number, worker = this.#anyWorker()): Promise<void> {
    const id = await this.#dueRun();
    this.#disturbance = disturbance;
    if (disturbance !== NONE && this.random(20) === 0) {
      const path = this.random(2) === 0 ? '/employees' : '/departments/list';
      this.sandbox.faults.add({ kind: 'alter', members: { totalRecords: 70 } }, { path, skip: this.random(5) });
      this.#note(`a false total at ${path}`);
    }
    const options = this.#happens(stops) ? { stopAfterPages: 1 + this.random(12) } : {};
    this.#note(describeRun(await worker.work(id, options)));
  }

  /** The slow worker stands still before some request; meanwhile the operator acts, and the quick worker may take its run. */
  async #freezeAndOvertake(): Promise<void> {
    const id = await this.#dueRun();
    const freeze = { requestsLeft: 1 + this.random(7), frozen: gate(), thawed: gate() };
    this.#freeze = freeze;
    this.#disturbance = { ...this.#anyDisturbance(), actions: 0 };
    const work = this.#worker('slow').work(id);
    await Promise.race([work, freeze.frozen.opened]);
    this.#note('frozen');
    for (let n = this.random(4); n >= 0; n -= 1) {
      if (this.#happens(70)) await this.#act(ACTIONS);
      else await this.#work(this.#disturbance, 60, this.#worker('quick'));
      if (this.random(2) === 0) this.#note(this.model.change());
    }
    this.#freeze = undefined;
    freeze.thawed.open();
    this.#note(`thawed: ${describeRun(await work)}`);
  }

  #anyDisturbance(): Disturbance {
    return {
      changes: [0, 0, 10, 40][this.random(4)]!,
      actions: [0, 0, 0, 8][this.random(4)]!,
      failures: [0, 0, 0, 8, 20][this.random(5)]!,
      failure: this.#happens(70) ? 'service_unreachable' : 'service_refused',
    };
  }

  async #request(
    mode: RunModel['mode'] = this.#happens(30) ? 'full' : 'resume',
    resources = this.#anyResources(),
  ): Promise<string> {
    const trigger = this.random(2) === 0 ? 'nightly' : 'manual';
    const { id } = await this.#anyWorker().runs.request({ company: this.company, trigger, mode, resources });
    this.#note(`asked ${trigger} for ${mode} of ${resources.join(', ')}`);
    return id;
  }

  #anyResources(): readonly ModelResource[] {
    const some = RESOURCES.filter(() => this.random(2) === 0);
    return some.length > 0 && this.random(3) === 0 ? some : RESOURCES;
  }

  async #decide(decision: 'approve' | 'reject'): Promise<void> {
    const holds = await this.#openHolds();
    const hold = holds.at(this.random(holds.length || 1));
    if (hold)
      await this.#attempt(`${decision} ${hold.resource}`, (decision === 'approve' ? approveHold : rejectHold)(this.db, hold.id));
  }

  /** Approves every open hold; says whether there was one. */
  async #approveAll(): Promise<boolean> {
    const holds = await this.#openHolds();
    for (const { id } of holds) await approveHold(this.db, id);
    return holds.length > 0;
  }

  #openHolds() {
    return this.db.prisma.hold.findMany({ where: { ...this.company, status: 'open' }, orderBy: { seq: 'asc' } });
  }

  /** What is refused for a good reason changes nothing. */
  async #attempt(what: string, action: Promise<unknown>): Promise<void> {
    try {
      await action;
      this.#note(what);
    } catch (error) {
      if (!isMusterError(error)) throw error;
      this.#note(`${what}: ${error.code}`);
    }
  }

  /** The active run's end, which takes a worker where one had begun it. */
  async #cancelActive(): Promise<void> {
    await this.#actions.cancel();
    const id = await this.#activeRun();
    if (id === undefined) return;
    await this.#lapse(id);
    await this.#anyWorker().work(id);
  }

  /** The active run, or else a new one, for any worker to have. */
  async #dueRun(): Promise<string> {
    const id = (await this.#activeRun()) ?? (await this.#request());
    await this.#lapse(id);
    return id;
  }

  async #activeRun(): Promise<string | undefined> {
    const run = await this.db.prisma.run.findFirst({ where: { ...this.company, status: { in: ['queued', 'running'] } } });
    return run?.id;
  }

  /** As if its worker had been silent for a minute, and its wait were over. */
  async #lapse(id: string): Promise<void> {
    const sql = `UPDATE muster.runs SET heartbeat_at = now() - interval '1 minute', start_after = now() WHERE id = $1`;
    await this.db.pool.query(sql, [id]);
  }

  #worker(name: WorkerName): SyncHarness {
    return this.#workers[0]![name];
  }

  /** Now and then of the other edition of the catalogue. */
  #anyWorker(): SyncHarness {
    return this.#workers[this.#happens(12) ? 1 : 0]![this.random(2) === 0 ? 'slow' : 'quick'];
  }

  #happens(percent: number): boolean {
    return this.random(100) < percent;
  }

  #note(note: string): void {
    this.#history += `; ${note}`;
  }
}

interface Gate {
  readonly opened: Promise<void>;
  readonly open: () => void;
}

function gate(): Gate {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

function describeRun({ status, walks }: RunModel): string {
  const described = walks.map((walk) => {
    const verdict = walk.proof ?? walk.unverified_reason ?? walk.error?.code ?? 'no verdict';
    return `${walk.resource} ${walk.status} after ${walk.pages} pages (${verdict})`;
  });
  return `run ${status}: ${described.join(', ')}`;
}
