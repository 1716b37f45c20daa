import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import type { Secret } from '../../src/core/secret.js';
import { TokenKeeper } from '../../src/oauth/keeper.js';
import { Onboarding } from '../../src/oauth/onboarding.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { type KeeperSettings, keeperParts } from './keeper-parts.js';

const SCRIPT = fileURLToPath(new URL('keeper-process.ts', import.meta.url));

export type Answer = { readonly token: string } | { readonly error: string };

/** A process of its own that keeps tokens. */
export class KeeperProcess {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  static async start(settings: KeeperSettings): Promise<KeeperProcess> {
    const child = fork(SCRIPT, [], { execArgv: ['--import', 'tsx'], env: { ...process.env, KEEPER: JSON.stringify(settings) } });
    const started = new KeeperProcess(child);
    await started.#message();
    return started;
  }

  /** Asks for the company's token. */
  ask(companyId: string): Promise<Answer> {
    const answer = this.#message() as Promise<Answer>;
    this.#child.send(companyId);
    return answer;
  }

  /** kill -9; resolves when it is gone. */
  async kill(): Promise<void> {
    const gone = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.kill('SIGKILL');
    await gone;
  }

  #message(): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const died = () => reject(new Error('the process ended'));
      this.#child.once('exit', died);
      this.#child.once('message', (message) => {
        this.#child.off('exit', died);
        resolve(message);
      });
    });
  }
}

/** A provider with single-use refresh tokens, a database, and any number of processes that keep tokens in it. */
export class KeeperFleet {
  /** One, as in the API: it sees to it that its work does not take every connection of the pool. */
  readonly #onboarding: Onboarding;

  private constructor(
    readonly sandbox: Sandbox,
    readonly database: TestDatabase,
    readonly settings: KeeperSettings,
    readonly parts: ReturnType<typeof keeperParts>,
  ) {
    this.#onboarding = new Onboarding(parts);
  }

  static async open(companies: number): Promise<KeeperFleet> {
    const sandbox = await startSandbox({
      companies: Array.from({ length: companies }, (_, i) => ({ name: `Company ${i}`, employees: 1 })),
    });
    const database = await testDatabase();
    const settings = {
      database: database.url,
      provider: sandbox.url.href,
      clientId: sandbox.clientId,
      clientSecret: sandbox.clientSecret.reveal(),
      key: randomBytes(32).toString('base64'),
    };
    const fleet = new KeeperFleet(sandbox, database, settings, keeperParts(settings));
    for (const { companyId } of sandbox.companies) await fleet.onboard(companyId);
    return fleet;
  }

  start(): Promise<KeeperProcess> {
    return KeeperProcess.start(this.settings);
  }

  /** A person authorizes. */
  async onboard(companyId: string): Promise<void> {
    await this.#onboarding.onboard({
      environment: 'test',
      companyId,
      refreshToken: this.sandbox.issueRefreshToken(companyId),
    });
  }

  /** Refreshes that the provider was asked for. */
  get refreshes(): number {
    return this.sandbox.requests.all('/auth/token').length;
  }

  /** A keeper in this process, for what comes after a crash. */
  keeper(): TokenKeeper {
    return new TokenKeeper(this.parts);
  }

  async expire(companyId: string): Promise<void> {
    await this.alter(companyId, "expires_at = now() - interval '1 second', refresh_at = now()");
  }

  async alter(companyId: string, assignments: string): Promise<void> {
    await this.database.db.pool.query(`UPDATE muster.tokens SET ${assignments} WHERE company_id = $1`, [companyId]);
  }

  /** What the provider says to the access token. */
  async status(companyId: string, token: Secret): Promise<number> {
    const response = await fetch(new URL(`/api/companies/${companyId}`, this.sandbox.url), {
      headers: { authorization: `Bearer ${token.reveal()}` },
    });
    await response.arrayBuffer();
    return response.status;
  }

  async close(): Promise<void> {
    await this.parts.db.close();
    await this.sandbox.stop();
    await this.database.close();
  }
}
