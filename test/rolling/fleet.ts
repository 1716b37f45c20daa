import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { type Database, openDatabase } from '../../src/db/connection/database.js';
import { everyRunEnds, findMirrorFaults } from '../campaign/settled-mirror.js';
import { EXPIRED } from '../oauth/fixture.js';
import { Deployment } from '../process/deployment.js';
import { waitFor } from '../process/wait-for.js';
import { anyPort } from '../support/port.js';
import { startNode } from '../support/process.js';
import { ENTRIES } from '../walks/company-fixture.js';
import { FeedReader } from './feed-reader.js';
import { Readers } from './readers.js';
import { type EndSignal, Slot, type SlotOptions, type Version } from './slot.js';

const LISTS = ['employees', 'departments', 'documents'] as const;
const CATALOGUE = { employees: ENTRIES.employees, departments: ENTRIES.departments, documents: ENTRIES.documents };
const COMPANIES = Array.from({ length: 6 }, (_, n) => ({ name: `C${n}`, employees: 30 + ((n * 37) % 90) }));
/** So long takes a request that some are under way at any moment. */
const LATENCY_MS = 30;
/** At each beat the service's data change, every company is asked to be synced, and one company's access token expires. */
const BEAT_MS = 700;
const CHANGES_A_BEAT = 4;
/** How long an API that is told to stop is still served, so that a load balancer notices. */
const DRAIN_SECONDS = '2';

export interface FleetOptions {
  readonly folders: SlotOptions['folders'];
  /** The address of an empty database, as its owner. */
  readonly owner: string;
  /** The role of the processes, and the address of the database with it. Without one, they are the owner. */
  readonly runtime: { readonly role: string; readonly url: string } | undefined;
  readonly redisUrl: string | undefined;
}

/** Two APIs and three workers that share one installation, each of either version, under load. */
export class Fleet {
  readonly slots: readonly Slot[];
  readonly readers: Readers;
  readonly feed: FeedReader;
  /** Reasons for which companies had to authorize again. */
  readonly lost: string[] = [];
  readonly #load = new AbortController();
  #loading: Promise<void> | undefined;

  private constructor(
    readonly deployment: Deployment,
    readonly db: Database,
    readonly options: FleetOptions,
  ) {
    const { folders } = options;
    const { env, adminToken } = deployment;
    const api = (name: string) => {
      const own = { PORT: String(anyPort()), MUSTER_ADMIN_TOKEN: adminToken, DRAIN_SECONDS };
      return new Slot({ name, role: 'api', folders, env: { ...env, ...own } });
    };
    const worker = (name: string) => new Slot({ name, role: 'worker', folders, env });
    this.slots = [...['first API', 'second API'].map(api), ...['first worker', 'second worker', 'third worker'].map(worker)];
    this.readers = new Readers(adminToken);
    this.feed = new FeedReader(this.readers, this.apis);
  }

  /** Resolves when a fleet of the version before has mirrored every company. */
  static async open(options: FleetOptions): Promise<Fleet> {
    const { owner, runtime, redisUrl } = options;
    const db = openDatabase({ url: owner, poolSize: 4 });
    const deployment = await Deployment.open({
      database: { url: runtime?.url ?? owner, db, close: () => db.close() },
      redisUrl,
      catalogue: CATALOGUE,
      sandbox: { companies: COMPANIES, latencyMs: LATENCY_MS, etags: true },
    });
    const fleet = new Fleet(deployment, db, options);
    try {
      await fleet.migrate('before');
      await Promise.all(fleet.slots.map((slot) => slot.start('before')));
      for (const { companyId } of deployment.sandbox.companies) await fleet.#authorize(companyId, 201);
      await everyRunEnds(db);
      await fleet.readers.start(fleet.apis, deployment.sandbox.companies[0]!.companyId);
      fleet.feed.start();
      await fleet.#areReady();
      fleet.#loading = fleet.#loadUntilStopped();
      return fleet;
    } catch (error) {
      await fleet.close();
      throw error;
    }
  }

  get apis(): readonly Slot[] {
    return this.slots.filter(({ role }) => role === 'api');
  }

  /** Runs `muster migrate` of this version as the owner of the database. */
  async migrate(version: Version): Promise<void> {
    const { folders, owner, runtime } = this.options;
    const grant = runtime ? ['--grant-runtime', runtime.role] : [];
    const env = { ...this.deployment.env, DATABASE_URL: owner };
    const command = startNode([path.join(folders[version], 'bin/muster'), 'migrate', ...grant], env);
    const { code } = await command.exit;
    if (code !== 0) throw new Error(`muster migrate (${version}) ended with ${code}: ${command.stderr}`);
  }

  /** Exchanges the process of a slot while a run is under way. An API keeps its port, so it ends before the next one starts. */
  async exchange(slot: Slot, version: Version, signal: EndSignal, order: 'end first' | 'start first'): Promise<void> {
    await this.#areReady();
    const running = () => this.#query(`SELECT FROM muster.runs WHERE status = 'running' LIMIT 1`);
    await waitFor(async () => (await running()).length > 0, { intervalMs: 50, what: 'a run to be under way' });
    await slot.exchange(version, signal, slot.role === 'api' ? 'end first' : order);
  }

  /** Stops the load, syncs every company twice more, and returns what is not as it should be: a line each. */
  async settle(): Promise<string[]> {
    await this.#areReady();
    this.#load.abort();
    await this.#loading;
    await everyRunEnds(this.db);
    // What changed while a list was walked is for the next run.
    for (let n = 0; n < 2; n += 1) {
      await this.#reauthorize();
      await this.#sync(this.apis[n % 2]!);
      await everyRunEnds(this.db);
    }
    if (this.lost.length > 0) await this.#approveGrantHolds();
    await this.feed.stop();
    await this.readers.stop();
    const isOfLoss = (fault: string) => this.lost.length > 0 && fault.includes('run failed: reauthorization_required');
    return [
      ...this.slots.flatMap(({ faults }) => faults).filter((fault) => !isOfLoss(fault)),
      ...this.readers.faults,
      ...(await this.#runFaults()),
      ...(await findMirrorFaults(this.deployment, LISTS)),
      ...(await this.#feedFaults()),
    ];
  }

  /** Each view of schema warehouse with the transaction that made it last: where two versions fight for a view, it changes again and again. */
  async views(): Promise<Record<string, string>> {
    const rows = await this.#query<{ name: string; made: string }>(`
      SELECT c.relname AS name, c.oid || '/' || r.xmin AS made FROM pg_class c JOIN pg_rewrite r ON r.ev_class = c.oid
      WHERE c.relnamespace = 'warehouse'::regnamespace AND c.relkind = 'v' ORDER BY 1`);
    return Object.fromEntries(rows.map(({ name, made }) => [name, made]));
  }

  async close(): Promise<void> {
    this.#load.abort();
    await this.#loading;
    await this.readers.stop();
    await Promise.all(this.slots.map(async (slot) => slot.phase === 'serving' && slot.end('SIGTERM')));
    await this.deployment.close();
  }

  async #areReady(): Promise<void> {
    await waitFor(() => this.apis.every(({ phase, isReady }) => phase === 'serving' && isReady), {
      what: 'both APIs to be ready',
    });
  }

  async #loadUntilStopped(): Promise<void> {
    const { sandbox } = this.deployment;
    for (let beat = 0; !this.#load.signal.aborted; beat += 1) {
      sandbox.mutate(CHANGES_A_BEAT);
      await this.#sync(this.apis[beat % 2]!);
      const { companyId } = sandbox.companies[beat % COMPANIES.length]!;
      await this.#query(`UPDATE muster.tokens SET ${EXPIRED} WHERE company_id = '${companyId}'`);
      await sleep(BEAT_MS, undefined, { signal: this.#load.signal }).catch(() => undefined);
    }
  }

  async #sync(api: Slot): Promise<void> {
    const headers = { 'content-type': 'application/json' };
    if (api.isReady) await this.readers.call(api, '/api/syncs', { method: 'POST', body: '{}', headers });
  }

  /** A person authorizes each company that needs it. */
  async #reauthorize(): Promise<void> {
    const found = await this.#query<{ id: string; reason: string }>(
      `SELECT company_id::text AS id, reauthorization_reason AS reason FROM muster.connections WHERE status = 'reauthorization_required'`,
    );
    for (const { id, reason } of found) {
      this.lost.push(reason);
      await this.#authorize(id, 200);
    }
    await everyRunEnds(this.db);
  }

  /** A company that authorized again has another grant, under which a person decides on the rows that are gone. */
  async #approveGrantHolds(): Promise<void> {
    const holds = await this.#query<{ id: string }>(
      `SELECT id::text FROM muster.holds WHERE status = 'open' AND cause = 'grant'`,
    );
    for (const { id } of holds) await this.readers.call(this.apis[0]!, `/api/holds/${id}/approve`, { method: 'POST' });
    await everyRunEnds(this.db);
  }

  async #authorize(companyId: string, expected: number): Promise<void> {
    const refresh_token = this.deployment.sandbox.issueRefreshToken(companyId).reveal();
    const response = await this.readers.call(this.apis[0]!, '/api/companies', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ environment: 'test', company_id: companyId, refresh_token }),
    });
    if (response?.status !== expected) throw new Error(`onboarding was answered ${response?.status}: ${await response?.text()}`);
  }

  /** Runs and lists that failed, but those of companies that had to authorize again. */
  async #runFaults(): Promise<string[]> {
    const rows = await this.#query<{ line: string; code: string | null }>(`
      SELECT 'run ' || id || ' ' || status || ' ' || COALESCE(error::text, '') AS line, error->>'code' AS code FROM muster.runs
      WHERE status <> 'succeeded'
      UNION ALL SELECT 'walk of ' || resource || ': ' || error::text, error->>'code' FROM muster.walks WHERE error IS NOT NULL`);
    return rows
      .filter(({ code }) => !this.lost.includes(code ?? '') && code !== 'reauthorization_required')
      .map(({ line }) => line);
  }

  /** What the reader of the feed lacks, or has twice or out of order. */
  async #feedFaults(): Promise<string[]> {
    const rows = await this.#query<{ seq: string }>('SELECT c.seq::text FROM mirror.changes c ORDER BY c.seq');
    const whole = rows.map(({ seq }) => seq);
    const { read } = this.feed;
    if (isDeepStrictEqual(read, whole)) return [];
    const lacks = whole.filter((seq) => !read.includes(seq));
    return [`the reader of the feed has ${read.length} of ${whole.length} changes, and lacks ${lacks.slice(0, 5).join()}`];
  }

  async #query<Row extends object>(sql: string): Promise<Row[]> {
    return (await this.db.pool.query<Row>(sql)).rows;
  }
}
