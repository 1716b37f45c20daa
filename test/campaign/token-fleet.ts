import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import type { Secret } from '../../src/core/secret.js';
import { AccessTokenManager } from '../../src/oauth/access-token-manager.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import type { OauthRoom } from '../oauth/fixture.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { type TokenSettings, tokenRoom } from './token-room.js';

const SCRIPT = fileURLToPath(new URL('token-process.ts', import.meta.url));

export type Answer = { readonly token: string } | { readonly error: string };

/** A process of its own that refreshes tokens. */
export class TokenProcess {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  static async start(settings: TokenSettings): Promise<TokenProcess> {
    const child = fork(SCRIPT, [], {
      execArgv: ['--import', 'tsx'],
      env: { ...process.env, TOKEN_SETTINGS: JSON.stringify(settings) },
    });
    const started = new TokenProcess(child);
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

/** A provider with single-use refresh tokens, a database, and any number of processes that refresh the tokens in it. */
export class TokenFleet {
  private constructor(
    readonly sandbox: Sandbox,
    readonly database: TestDatabase,
    readonly settings: TokenSettings,
    readonly room: OauthRoom,
  ) {}

  /** With a first refresh granted: before it, refreshes go one at a time, and one whose process dies keeps all others waiting. */
  static async open(companies: number): Promise<TokenFleet> {
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
    const fleet = new TokenFleet(sandbox, database, settings, tokenRoom(settings));
    for (const { companyId } of sandbox.companies) await fleet.onboard(companyId);
    const [first] = sandbox.companies;
    if (first) await fleet.expire(first.companyId);
    if (first) await fleet.manager().sourceFor({ environment: 'test', companyId: first.companyId }).get();
    return fleet;
  }

  start(): Promise<TokenProcess> {
    return TokenProcess.start(this.settings);
  }

  /** A person authorizes. */
  async onboard(companyId: string): Promise<void> {
    await this.room.onboarding.onboard({
      environment: 'test',
      companyId,
      refreshToken: this.sandbox.issueRefreshToken(companyId),
    });
  }

  /** Refreshes that the provider was asked for. */
  get refreshes(): number {
    return this.sandbox.requests.all('/auth/token').length;
  }

  /** A manager in this process that remembers nothing, for what comes after a crash. */
  manager(): AccessTokenManager {
    return new AccessTokenManager(this.room.deps);
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
    await this.room.deps.db.close();
    await this.sandbox.stop();
    await this.database.close();
  }
}
