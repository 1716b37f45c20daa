import { createHash } from 'node:crypto';
import pRetry from 'p-retry';
import { pino } from 'pino';
import { presentRun, type RunModel } from '../../src/api/runs/run-model.js';
import type { Catalogue, Endpoint } from '../../src/catalogue/endpoint.js';
import { type Clock, systemClock } from '../../src/core/clock.js';
import type { CompanyKey } from '../../src/core/company.js';
import type { QuietHours } from '../../src/core/quiet-hours.js';
import { Secret } from '../../src/core/secret.js';
import type { Database } from '../../src/db/connection/database.js';
import { isPassingTrouble } from '../../src/db/connection/sql-state.js';
import { ApiClient, type ApiRequest, type ApiResponse } from '../../src/http/api-client.js';
import { HttpClient, type HttpLimits } from '../../src/http/http-client.js';
import { ResponseMemory } from '../../src/http/response-memory.js';
import type { TokenSource } from '../../src/http/token-source.js';
import type { WorkMetrics } from '../../src/observability/work-metrics.js';
import { RunExecutor } from '../../src/runs/run-executor.js';
import { RunLeases } from '../../src/runs/run-leases.js';
import type { RunOptions } from '../../src/runs/run-requests.js';
import { Runs } from '../../src/runs/runs.js';
import type { Sandbox } from '../../src/sandbox/sandbox.js';
import type { Comparisons } from '../../src/walks/comparison.js';
import { WalkStore } from '../../src/walks/walk-store.js';
import { hurriedClock } from '../support/hurried-clock.js';
import { notQuiet } from '../support/quiet.js';
import { testSuppressions } from '../support/suppressions.js';
import { projectComparisons } from './comparisons.js';

export interface SyncHarness {
  readonly runs: Runs;
  readonly store: WalkStore;
  /** A company of the sandbox with a connection and a token, but no queue: runs are worked on when asked. */
  onboard(companyId: string): Promise<CompanyKey>;
  /** Asks for a run and works on it until it ends, waits to retry, or yields for the `yields`-th time. */
  sync(company: CompanyKey, request?: Partial<RunOptions>, options?: WorkOptions): Promise<RunModel>;
  /** Asks for a second reading and works on it until it ends or waits to retry. */
  verify(company: CompanyKey, request?: { resources?: string[] }): Promise<RunModel>;
  /** The run as the API shows it. */
  read(id: string): Promise<RunModel>;
  /** Claims the run and works on it, as a worker that gets its job. */
  work(id: string, options?: WorkOptions): Promise<RunModel>;
  close(): Promise<void>;
}

interface WorkOptions {
  /** Yields behind so many pages. */
  readonly stopAfterPages?: number;
}

export interface HarnessOptions {
  /** Name under which runs are claimed. */
  readonly worker?: string;
  /** Called before every request to the API; the place to change the world, or to be frozen. */
  readonly beforeRequest?: (request: ApiRequest) => Promise<void> | void;
  /** A provider of the test's own for some paths: the text of the answer, or undefined for what the sandbox serves. */
  readonly respond?: (request: ApiRequest) => string | undefined;
  /** Whether that provider gives ETags. */
  readonly etags?: boolean;
  /** Decides which records need no comparison; the project's unless said. */
  readonly comparisons?: Comparisons;
  readonly clock?: Clock;
  readonly quiet?: QuietHours;
  readonly http?: HttpLimits;
  /** Counts the work. */
  readonly work?: WorkMetrics;
}

/** What of the sandbox gives tokens. */
type Issuer = Pick<Sandbox, 'url' | 'clientId' | 'clientSecret' | 'issueRefreshToken'>;

/** Whom the lists are asked of: the sandbox, or somebody for whom the test has a token. */
type Provider = Issuer | { readonly url: URL; readonly tokens: TokenSource };

/** The sync room with its real parts around a real database and a real provider, without the queue. */
export function syncHarness(
  db: Database,
  provider: Provider,
  endpoints: readonly Endpoint[],
  {
    worker: name = 'harness',
    beforeRequest = () => {},
    respond = () => undefined,
    etags = false,
    comparisons = projectComparisons(),
    clock = systemClock,
    quiet = notQuiet,
    http: limits = {},
    work: counts,
  }: HarnessOptions = {},
): SyncHarness {
  const logger = pino({ level: process.env.TEST_LOG ?? 'silent' });
  const catalogue: Catalogue = { endpoints, get: (resource) => endpoints.find((endpoint) => endpoint.resource === resource) };
  const runs = new Runs({
    db,
    catalogue,
    clock,
    quiet,
    schedule: { cron: '0 2 * * *', timezone: 'UTC', spreadMinutes: 120 },
    dispatcher: { dispatch: async () => {} },
  });
  const http = new HttpClient(limits);
  const api = new ApiClient({
    http,
    provider: { baseUrl: provider.url },
    clock,
    logger,
    ...(counts && { counts: counts.requestsOf('test') }),
  });
  const store = new WalkStore({ db, clock, quiet, comparisons, suppressions: testSuppressions, work: counts });
  const leases = new RunLeases(db, name, logger);
  const executor = new RunExecutor({
    db,
    answers: new ResponseMemory(),
    suppressions: testSuppressions,
    rowHashOf: comparisons.rowHashOf,
    catalogue,
    clock,
    quiet,
    logger,
    store,
    work: counts,
    tokensOf: ({ companyId }) => ('tokens' in provider ? provider.tokens : tokenSource(provider, companyId)),
    apiOf: () => ({
      baseUrl: api.baseUrl,
      request: async (request) => {
        await beforeRequest(request);
        const text = respond(request);
        return text === undefined ? api.request(request) : answerOf(text, etags, request);
      },
    }),
  });
  // A test that ends connections ends those that it reads over, too.
  const find = (id: string) =>
    pRetry(() => runs.find(id), { minTimeout: 20, shouldRetry: ({ error }) => isPassingTrouble(error) });
  const read = async (id: string) => presentRun((await find(id))!);
  async function work(id: string, options: WorkOptions = {}): Promise<RunModel> {
    let pages = 0;
    const shouldYield = () => options.stopAfterPages !== undefined && ++pages >= options.stopAfterPages;
    await leases.work(id, (leased) => executor.execute(leased, shouldYield));
    return read(id);
  }
  return {
    runs,
    store,
    read,
    work,
    async onboard(companyId) {
      const company: CompanyKey = { environment: 'test', companyId };
      // One statement: hundreds of tests walk over a company of their own.
      await db.pool.query(
        `WITH connected AS (INSERT INTO muster.connections (environment, company_id) VALUES ($1, $2))
         INSERT INTO mirror.companies (environment, company_id) VALUES ($1, $2)`,
        [company.environment, companyId],
      );
      return company;
    },
    async sync(company, request, options) {
      const { id } = await runs.request({ company, trigger: 'manual', ...request });
      return work(id, options);
    },
    async verify(company, request) {
      const { id } = await runs.requestVerification({ company, trigger: 'verify', ...request });
      return work(id);
    },
    close: () => http.close(),
  };
}

/** The same around a provider that gives anybody's token for anything, and serves no company's tokens itself. */
export function foreignHarness(db: Database, url: URL, endpoints: readonly Endpoint[]) {
  const token: Secret = new Secret('a.b.c');
  const tokens: TokenSource = { get: async () => token, renew: async () => token, refused: async () => {} };
  const harness = syncHarness(db, { url, tokens }, endpoints, { clock: hurriedClock });
  /** Onboards the company where it is not. */
  async function connect(companyId: string): Promise<CompanyKey> {
    const company: CompanyKey = { environment: 'test', companyId };
    const known = await db.prisma.connection.findFirst({ where: company });
    return known ? company : harness.onboard(companyId);
  }
  return { ...harness, connect };
}

/** Which page of a list is asked for, in whichever style. */
export function askedFor({ body, query }: Pick<ApiRequest, 'body' | 'query'>) {
  const { skip, take, pageSize, continuationToken } = (body ?? query) as Record<string, number & string>;
  return { skip: Number(skip), take: Number(take ?? pageSize), token: continuationToken };
}

/** What a provider answers whose page has this text. */
export function answerOf(text: string, etags: boolean, { ifNoneMatch }: Pick<ApiRequest, 'ifNoneMatch'>): ApiResponse {
  const url = 'http://service/list';
  if (!etags) return { status: 200, headers: {}, bytes: ownBytes(text), url };
  const etag = `"${createHash('sha256').update(text).digest('hex')}"`;
  const isSame = etag === ifNoneMatch;
  const sent = isSame ? '' : text;
  return { status: isSame ? 304 : 200, headers: { etag }, bytes: ownBytes(sent), url };
}

/** In memory of their own, however few: those of a usual page are given back once they are written. */
export function ownBytes(text: string): Buffer {
  const bytes = Buffer.alloc(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}

function tokenSource(sandbox: Issuer, companyId: string): TokenSource {
  let token: Promise<Secret> | undefined;
  const get = () => (token ??= accessToken(sandbox, companyId));
  return { get, renew: get, refused: async () => {} };
}

async function accessToken({ url, clientId, clientSecret, issueRefreshToken }: Issuer, companyId: string): Promise<Secret> {
  const refreshToken = issueRefreshToken(companyId).reveal();
  const response = await fetch(new URL('/auth/token', url), {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'refresh_token',
      refresh_token: refreshToken,
      client_id: clientId,
      client_secret: clientSecret.reveal(),
    }),
  });
  const { access_token } = (await response.json()) as { access_token: string };
  return new Secret(access_token);
}
