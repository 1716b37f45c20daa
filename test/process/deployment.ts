import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { RunModel } from '../../src/api/runs/run-model.js';
import type { CompanyKey } from '../../src/core/company.js';
import { Secret } from '../../src/core/secret.js';
import { Cipher, Keyring } from '../../src/oauth/cipher.js';
import { type Sandbox, type SandboxOptions, startSandbox } from '../../src/sandbox/sandbox.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { documentedFetch } from '../support/documented-answers.js';
import { anyPort } from '../support/port.js';
import { startMuster, type TestProcess } from '../support/process.js';
import { waitFor } from '../support/wait-for.js';

export interface DeploymentOptions {
  /** On a server of its own; otherwise one of the server that all tests share. Closed with the deployment. */
  readonly database?: TestDatabase;
  readonly redisUrl?: string | undefined;
  readonly sandbox?: SandboxOptions;
  /** Catalogue file as JSON; the built-in one otherwise. */
  readonly catalogue?: object;
  readonly env?: Record<string, string>;
}

/** Muster as it is deployed: real processes around a real database, a real queue and a provider, all for one test file. */
export class Deployment {
  readonly adminToken = randomBytes(24).toString('hex');
  readonly port = String(anyPort());
  readonly #started: TestProcess[] = [];
  /** Without the token, unless it is given. Throws for an answer that the OpenAPI document does not allow, as `call` does. */
  readonly fetch = documentedFetch(() => this.url);

  private constructor(
    readonly sandbox: Sandbox,
    readonly database: TestDatabase,
    readonly home: string,
    readonly env: Record<string, string>,
  ) {}

  static async open(options: DeploymentOptions = {}): Promise<Deployment> {
    if (options.redisUrl) await emptyRedis(options.redisUrl);
    const sandbox = await startSandbox(options.sandbox);
    const database = options.database ?? (await testDatabase());
    const home = mkdtempSync(join(tmpdir(), 'muster-'));
    const cataloguePath = join(home, 'catalogue.json');
    if (options.catalogue) writeFileSync(cataloguePath, JSON.stringify(options.catalogue));
    const address = sandbox.url.href.replace(/\/$/, '');
    return new Deployment(sandbox, database, home, {
      DATABASE_URL: database.url,
      ...(options.redisUrl && { REDIS_URL: options.redisUrl }),
      ...(options.catalogue && { MUSTER_CATALOGUE: cataloguePath }),
      MUSTER_HOME: home,
      MUSTER_ENCRYPTION_KEYS: `test:${randomBytes(32).toString('base64')}`,
      // No nightly run comes between, at whatever hour the tests are run.
      SYNC_CRON: '0 0 29 2 *',
      TEST_BASE_URL: address,
      TEST_AUTH_URL: address,
      TEST_CLIENT_ID: sandbox.clientId,
      TEST_CLIENT_SECRET: sandbox.clientSecret.reveal(),
      ...options.env,
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async startApi(): Promise<TestProcess> {
    const api = startMuster(['api'], { ...this.env, PORT: this.port, MUSTER_ADMIN_TOKEN: this.adminToken });
    this.#started.push(api);
    await api.waitForOutput(/ready: api/);
    return api;
  }

  async startWorker(env: Record<string, string> = {}): Promise<TestProcess> {
    const worker = startMuster(['worker'], { ...this.env, ...env });
    this.#started.push(worker);
    await worker.waitForOutput(/ready: worker/);
    return worker;
  }

  /** A call of the admin API: status, and the answer as JSON where it has one. */
  async call(method: string, path: string, body?: object): Promise<{ status: number; body: unknown }> {
    const response = await this.fetch(path, {
      method,
      headers: { authorization: `Bearer ${this.adminToken}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: (text ? JSON.parse(text) : undefined) as unknown };
  }

  /** The text of any answer. */
  async raw(path: string): Promise<string> {
    return (await this.fetch(path, { headers: { authorization: `Bearer ${this.adminToken}` } })).text();
  }

  async onboard(companyId: string): Promise<void> {
    const refresh_token = this.sandbox.issueRefreshToken(companyId).reveal();
    const { status, body } = await this.call('POST', '/api/companies', {
      environment: 'test',
      company_id: companyId,
      refresh_token,
    });
    if (status !== 201) throw new Error(`onboarding answered ${status}: ${JSON.stringify(body)}`);
  }

  async lastRun(companyId: string): Promise<RunModel> {
    const { body } = await this.call('GET', `/api/runs?company_id=${companyId}&limit=1`);
    return (body as { data: RunModel[] }).data[0]!;
  }

  /** The company's newest run, once it has ended. */
  async runEnd(companyId: string): Promise<RunModel> {
    const ended = async () => {
      const run = await this.lastRun(companyId);
      return ['succeeded', 'failed', 'cancelled'].includes(run.status) ? run : undefined;
    };
    return waitFor(ended, { intervalMs: 100 }); // each look costs the API and PostgreSQL some milliseconds
  }

  /** The company's newest run, once it has ended. If it waits to retry, it need not wait any longer. */
  async runRetried(companyId: string): Promise<RunModel> {
    const looking = new AbortController();
    const end = this.runEnd(companyId).finally(() => looking.abort());
    for (; !looking.signal.aborted; await Promise.race([end, sleep(200)]))
      await this.database.db.pool.query(
        "UPDATE muster.runs SET start_after = now() WHERE company_id = $1 AND status = 'queued' AND start_after > now()",
        [companyId],
      );
    return end;
  }

  /** The end of a run that waits to retry for as long as it may: its last attempt comes now. */
  async runGivenUp(companyId: string): Promise<RunModel> {
    await waitFor(async () => (await this.lastRun(companyId)).retry_at !== undefined, { intervalMs: 100 });
    await this.database.db.pool.query(
      "UPDATE muster.runs SET attempts = 99, start_after = now() WHERE company_id = $1 AND status = 'queued'",
      [companyId],
    );
    return this.runEnd(companyId);
  }

  /**
   * Sets the last heartbeat of each worker a minute back: the worker counts as gone, and another one goes on with its runs. Every worker must be
   * dead or frozen, since the next heartbeat of one that lives undoes this.
   */
  async ageHeartbeats(): Promise<void> {
    const { pool } = this.database.db;
    await pool.query(`UPDATE muster.runs SET heartbeat_at = now() - interval '1 minute' WHERE holder IS NOT NULL`);
    await pool.query(`UPDATE muster.workers SET seen_at = now() - interval '1 minute'`);
  }

  /** Every token that is stored now, in plain. */
  async storedTokens(): Promise<string[]> {
    const [id, key] = this.env['MUSTER_ENCRYPTION_KEYS']!.split(':') as [string, string];
    const cipher = new Cipher(new Keyring([{ id, key: new Secret(key) }]));
    const rows = await this.database.db.prisma.token.findMany();
    return rows.flatMap(({ environment, companyId, accessToken, refreshToken }) => {
      const company = { environment, companyId } as CompanyKey;
      const refresh = cipher.open(refreshToken, company, 'refresh_token').reveal();
      return accessToken ? [refresh, cipher.open(accessToken, company, 'access_token').reveal()] : [refresh];
    });
  }

  /** Ends its processes first. Every other one has to be over: a connection left open is a failure. */
  async close(): Promise<void> {
    for (const { kill } of this.#started) {
      kill('SIGTERM');
      kill('SIGCONT');
    }
    await Promise.all(this.#started.map(({ exit }) => exit));
    await this.sandbox.stop();
    await this.database.close();
    rmSync(this.home, { recursive: true, force: true });
  }
}

async function emptyRedis(url: string): Promise<void> {
  const redis = new Redis(url);
  await redis.flushdb();
  redis.disconnect();
}
