import { randomBytes, randomUUID } from 'node:crypto';
import { Registry } from 'prom-client';
import { Authenticator } from '../../src/api/plumbing/authenticator.js';
import type { ReadinessCheck } from '../../src/api/plumbing/readiness.js';
import { type AdminDependencies, type AdminServer, createAdminServer } from '../../src/api/server.js';
import { loadCatalogue } from '../../src/catalogue/load-catalogue.js';
import { systemClock } from '../../src/core/clock.js';
import type { CompanyKey, Environment } from '../../src/core/company.js';
import { MusterError } from '../../src/core/errors.js';
import { ofEnvironment, type ProviderSettings } from '../../src/core/provider-settings.js';
import { Secret } from '../../src/core/secret.js';
import { controlRoom } from '../../src/dashboard/control-room.js';
import type { ShownSetting } from '../../src/dashboard/pages/settings-page.js';
import type { OidcSettings } from '../../src/dashboard/sign-in/oidc-settings.js';
import type { Database } from '../../src/db/connection/database.js';
import { ApiClient } from '../../src/http/api-client.js';
import { HttpClient } from '../../src/http/http-client.js';
import { ResponseMemory } from '../../src/http/response-memory.js';
import { Authorization } from '../../src/oauth/authorization.js';
import { AuthorizationFlows } from '../../src/oauth/authorization-flows.js';
import { Cipher, Keyring } from '../../src/oauth/cipher.js';
import { ConnectLinks } from '../../src/oauth/connect-links.js';
import { Connections } from '../../src/oauth/connections.js';
import { Onboarding } from '../../src/oauth/onboarding.js';
import { TokenEndpoint } from '../../src/oauth/token-endpoint.js';
import { UnsavedTokenPairs } from '../../src/oauth/unsaved-token-pairs.js';
import { Vault } from '../../src/oauth/vault.js';
import { createLogger } from '../../src/observability/logger.js';
import { Runs } from '../../src/runs/runs.js';
import { testDatabase } from '../support/database.js';
import { documentedFetch } from '../support/documented-answers.js';
import { notQuiet } from '../support/quiet.js';
import { testSuppressions } from '../support/suppressions.js';

export const TOKEN = 'a-right-token-a6f0';

/** The admin API over a database of its own; only the authorization server is made up, and no worker takes the runs. */
export interface AdminFixture {
  readonly url: string;
  readonly db: Database;
  readonly server: AdminServer;
  readonly runs: Runs;
  /** Everything that was logged. */
  readonly log: () => string;
  /** What the authorization server says to the next refresh tokens; undefined = they are good. */
  refusal: MusterError | undefined;
  /** Refresh tokens that reached the authorization server. */
  readonly spent: string[];
  /** Parts that /readyz asks about. */
  readonly readiness: ReadinessCheck[];
  /** Without the token, unless it is given. Throws for an answer that the OpenAPI document does not allow, as `call` does. */
  fetch(path: string, init?: RequestInit): Promise<Response>;
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  /** An onboarded company with nothing mirrored. */
  addCompany(company?: Partial<CompanyKey>, state?: { paused?: boolean; reauthorizationReason?: string }): Promise<CompanyKey>;
  stop(): Promise<void>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // The answers' members are what the tests are about.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly json: any;
}

/** A provider at which nobody answers. */
export const SILENT: ProviderSettings = {
  baseUrl: new URL('http://127.0.0.1:9'),
  authUrl: new URL('http://127.0.0.1:9'),
  clientId: 'client-1',
  clientSecret: new Secret('client-secret-of-tests'),
  redirectUri: new URL('https://muster.example/oauth/callback'),
};

/** One of each kind. */
const SETTINGS: readonly ShownSetting[] = [
  { name: 'PORT', help: 'Port on which it listens.', value: '8080', isSecret: false, from: 'environment', unset: '8080' },
  { name: 'DATABASE_URL', help: 'PostgreSQL 15 or newer.', isSecret: true, from: 'file', unset: 'an embedded PostgreSQL' },
  { name: 'REDIS_URL', help: 'Redis, for the queue.', isSecret: true, from: 'default', unset: 'the queue lives in the database' },
];

export async function startAdmin(
  providers: Partial<Record<Environment, ProviderSettings>> = { production: SILENT, test: SILENT },
  { oidc, ...options }: Partial<AdminDependencies> & { oidc?: OidcSettings } = {},
): Promise<AdminFixture> {
  const database = await testDatabase();
  const { db } = database;
  const lines: string[] = [];
  const logger = createLogger({ level: 'trace', destination: { write: (line) => void lines.push(line) } });
  const clock = systemClock;
  const schedule = options.schedule ?? { cron: '0 2 * * *', timezone: 'UTC', spreadMinutes: 120 };
  const quiet = options.quiet ?? notQuiet;
  const catalogue = loadCatalogue();
  const runs = new Runs({ db, catalogue, quiet, schedule, clock, dispatcher: { dispatch: async () => {} } });
  const readiness: ReadinessCheck[] = [{ name: 'database', check: () => db.pool.query('SELECT 1') }];

  const addCompany: AdminFixture['addCompany'] = async (given = {}, state = {}) => {
    const company: CompanyKey = { environment: 'test', companyId: randomUUID(), ...given };
    await db.prisma.connection.create({ data: { ...company, ...state, token: { create: { refreshToken: 'encrypted' } } } });
    await db.prisma.company.create({ data: { ...company, name: `Company ${company.companyId.slice(0, 4)}` } });
    return company;
  };
  const keyring = new Keyring([{ id: 'k1', key: new Secret(randomBytes(32).toString('base64')) }]);
  const http = new HttpClient();
  const connections = new Connections(db, clock);
  const parts = {
    db,
    clock,
    logger,
    connections,
    received: new UnsavedTokenPairs(logger),
    vault: new Vault(new Cipher(keyring)),
    endpoints: Object.fromEntries(
      Object.entries(providers).map(([environment, provider]) => [environment, new TokenEndpoint(http, provider, clock)]),
    ),
  };
  const onboarding = new (class extends Onboarding {
    override async onboard({ environment, companyId, refreshToken }: Parameters<Onboarding['onboard']>[0]) {
      fixture.spent.push(refreshToken.reveal());
      if (fixture.refusal) throw fixture.refusal;
      const company = { environment, companyId };
      const known = await db.prisma.connection.findUnique({ where: { environment_companyId: company } });
      if (known?.status === 'active') throw new MusterError('already_onboarded', 'It is onboarded already.');
      if (known)
        await db.prisma.connection.update({ where: { environment_companyId: company }, data: { reauthorizationReason: null } });
      else await addCompany(company);
      return { created: !known };
    }
  })(parts);
  const publicUrl = options.publicUrl ?? new URL('https://muster.example');
  const links = new ConnectLinks({ ...parts, keyring, publicUrl });

  const server = createAdminServer({
    host: '127.0.0.1',
    port: 0,
    publicUrl,
    authenticator: new Authenticator({ db, clock, adminToken: new Secret(TOKEN) }),
    pages: controlRoom({ db, adminToken: new Secret(TOKEN), publicUrl, oidc, schedule, settings: SETTINGS }),
    logger,
    clock,
    db,
    catalogue,
    suppressions: testSuppressions,
    schedule,
    quiet,
    staleAfterHours: 26,
    connections,
    onboarding,
    runs,
    readiness,
    metrics: new Registry(),
    providers,
    connectLinks: links,
    vault: parts.vault,
    queueLook: { look: async () => [] },
    answers: new ResponseMemory(),
    apiOf: (environment, base) =>
      new ApiClient({ http, provider: ofEnvironment(providers, environment), clock, logger }).at(base),
    tokensOf: () => ({ get: async () => new Secret('a.b.c'), renew: async (stale) => stale, refused: async () => {} }),
    authorization: new Authorization({ ...parts, flows: new AuthorizationFlows(db, keyring, clock), links, providers }),
    ...options,
  });
  await server.start();

  const fetchDocumented = documentedFetch(() => server.url);

  const fixture: AdminFixture = {
    url: server.url,
    db,
    server,
    runs,
    log: () => lines.join(''),
    refusal: undefined,
    spent: [],
    readiness,
    addCompany,
    fetch: fetchDocumented,
    async call(method, path, body, headers = {}) {
      const response = await fetchDocumented(path, {
        method,
        headers: {
          authorization: `Bearer ${TOKEN}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      });
      const text = await response.text();
      const isJson = response.headers.get('content-type')?.includes('json') === true && text !== '' && !text.includes('}\n');
      return { status: response.status, headers: response.headers, text, json: isJson ? JSON.parse(text) : undefined };
    },
    async stop() {
      await server.stop();
      await http.close();
      await database.close();
    },
  };
  return fixture;
}

/** One committed batch of the change feed; `data` as text, to keep its digits. */
export async function writeChanges(
  db: Database,
  company: CompanyKey,
  changes: readonly { id: string; data?: string | null }[],
  resource = 'employees',
) {
  await db.pool.query(
    `WITH batch AS (
       INSERT INTO muster.change_batches (size, environment, company_id, resource, changed_at)
       VALUES ($1, $2, $3, $4, '2026-01-02T03:04:05.678Z') RETURNING id
     )
     INSERT INTO muster.changes (batch_id, position, record_id, op, data)
     SELECT batch.id, ordinality - 1, c.id, 'insert', c.data::jsonb
     FROM batch, unnest($5::text[], $6::text[]) WITH ORDINALITY AS c(id, data, ordinality)`,
    [
      changes.length,
      company.environment,
      company.companyId,
      resource,
      changes.map(({ id }) => id),
      changes.map(({ data }) => (data === undefined ? '{"n":1}' : data)),
    ],
  );
}
