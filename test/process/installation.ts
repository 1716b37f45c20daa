import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { systemClock } from '../../src/core/clock.js';
import type { CompanyKey } from '../../src/core/company.js';
import { Secret } from '../../src/core/secret.js';
import { openDatabase } from '../../src/db/connection/database.js';
import { AccessTokenManager } from '../../src/oauth/access-token-manager.js';
import { Keyring } from '../../src/oauth/cipher.js';
import { TokenJournal } from '../../src/oauth/token-journal.js';
import type { SandboxOptions } from '../../src/sandbox/sandbox.js';
import { alter, EXPIRED, oauthRoom } from '../oauth/fixture.js';
import type { TestDatabase } from '../support/database.js';
import { startMuster, type TestProcess } from '../support/process.js';
import { Deployment } from './deployment.js';
import { waitFor } from './wait-for.js';

const logger = pino({ enabled: false });

/** A beat of the load asks for a sync of every company. The syncs of one beat are over before the next, so the machine has time left for all else. */
const BEAT_MS = 2_000;

export interface InstallationOptions {
  readonly database: TestDatabase;
  readonly companies: NonNullable<SandboxOptions['companies']>;
  /** Whether there is a journal of refresh tokens. */
  readonly journal: boolean;
}

/** A deployment under load, whose database may become another one: an API and two workers, and syncs of every company again and again. Tokens live for 20 seconds. */
export class Installation {
  readonly #processes = new Set<TestProcess>();
  #load: { readonly ending: AbortController; readonly done: Promise<void> } | undefined;

  private constructor(readonly deployment: Deployment) {}

  /** Once every company is onboarded and synced. */
  static async open({ database, companies, journal }: InstallationOptions): Promise<Installation> {
    const deployment = await Deployment.open({ database, sandbox: { companies, accessTokenSeconds: 20 } });
    if (journal) deployment.env['TOKEN_JOURNAL'] = join(deployment.home, 'tokens.journal');
    const installation = new Installation(deployment);
    await installation.start();
    for (const companyId of installation.companies) await deployment.onboard(companyId);
    for (const companyId of installation.companies) await deployment.runEnd(companyId);
    return installation;
  }

  get companies(): string[] {
    return this.deployment.sandbox.companies.map(({ companyId }) => companyId);
  }

  /** The address of the database that its processes get when they start next. */
  get databaseUrl(): string {
    return this.deployment.env['DATABASE_URL']!;
  }

  set databaseUrl(url: string) {
    this.deployment.env['DATABASE_URL'] = url;
  }

  /** Refresh tokens that were sent a second time. */
  get reused(): number {
    return this.deployment.sandbox.reusedRefreshTokens;
  }

  async start(): Promise<void> {
    const { deployment } = this;
    for (const started of await Promise.all([deployment.startApi(), deployment.startWorker(), deployment.startWorker()]))
      this.#processes.add(started);
    const ending = new AbortController();
    const load = async () => {
      for (; !ending.signal.aborted; await sleep(BEAT_MS)) await deployment.call('POST', '/api/syncs', {}).catch(() => undefined);
    };
    this.#load = { ending, done: load() };
  }

  async stop(): Promise<void> {
    this.#load?.ending.abort();
    await this.#load?.done;
    for (const running of this.#processes) running.kill('SIGTERM');
    await Promise.all([...this.#processes].map(({ exit }) => exit));
    this.#processes.clear();
  }

  async close(): Promise<void> {
    await this.stop();
    await this.deployment.close();
  }

  /** Every company's token is refreshed so often, by one more process that has the same journal. */
  async rotate(times: number): Promise<void> {
    const { sandbox, env } = this.deployment;
    const [id, key] = env['MUSTER_ENCRYPTION_KEYS']!.split(':') as [string, string];
    const keyring = new Keyring([{ id, key: new Secret(key) }]);
    const client = { url: sandbox.url, clientId: sandbox.clientId, clientSecret: sandbox.clientSecret.reveal() };
    const db = openDatabase({ url: this.databaseUrl, poolSize: 4 });
    const { deps, vault } = oauthRoom(db, client, systemClock, keyring);
    const path = env['TOKEN_JOURNAL'];
    const journal = path === undefined ? undefined : new TokenJournal(path, { db, vault, logger });
    const manager = new AccessTokenManager({ ...deps, journal });
    const companies = this.companies.map((companyId): CompanyKey => ({ environment: 'test', companyId }));
    for (let i = 0; i < times; i++)
      await Promise.all(
        companies.map(async (company) => {
          await alter(db, company, EXPIRED);
          // The workers may be refreshing it, too, and an answer may come too late: then the next attempt is made at its time.
          await waitFor(() => manager.sourceFor(company).get(), {
            what: `${company.companyId} to be refreshed`,
            intervalMs: 500,
          });
        }),
      );
    await db.close();
  }

  /** Companies that must authorize again. */
  async lost(): Promise<number> {
    const db = openDatabase({ url: this.databaseUrl, poolSize: 1 });
    const { rows } = await db.pool.query<{ count: number }>(
      'SELECT count(*)::int AS count FROM muster.connections WHERE reauthorization_reason IS NOT NULL',
    );
    await db.close();
    return rows[0]!.count;
  }

  /** Resolves when every company was synced once more. */
  async syncAll(): Promise<void> {
    const { deployment } = this;
    for (const companyId of this.companies) {
      const before = await deployment.lastRun(companyId).catch(() => undefined);
      await waitFor(
        async () => {
          await deployment.call('POST', `/api/companies/test/${companyId}/sync`);
          const run = await deployment.runEnd(companyId);
          return run.status === 'succeeded' && run.id !== before?.id;
        },
        { what: `${companyId} to be synced`, intervalMs: 500 },
      );
    }
  }

  /** The causes of its ongoing issues. */
  async causes(): Promise<string[]> {
    const { body } = await this.deployment.call('GET', '/api/issues?status=ongoing');
    return (body as { data: { cause: string }[] }).data.map(({ cause }) => cause);
  }

  async issue(cause: string): Promise<void> {
    // Each look costs the API and PostgreSQL some milliseconds, and the issue comes when tokens have expired.
    await waitFor(async () => (await this.causes()).includes(cause), { what: `the issue ${cause}`, intervalMs: 250 });
  }

  /** What a command needs that asks its API or its database. */
  get commandEnv(): Record<string, string> {
    const { env, port, adminToken } = this.deployment;
    return { ...env, PORT: port, MUSTER_ADMIN_TOKEN: adminToken };
  }

  /** Standard output of a command. Throws where it fails. */
  async command(...args: string[]): Promise<string> {
    const command = startMuster(args, this.commandEnv);
    const { code } = await command.exit;
    if (code !== 0) throw new Error(`muster ${args[0]} ended with ${code}: ${command.stderr}`);
    return command.stdout;
  }
}
