import type { AddressInfo } from 'node:net';
import type { FastifyInstance, FastifyPluginAsync } from 'fastify';
import type { Clock } from '../core/clock.js';
import { MusterError } from '../core/errors.js';
import { ownAddress } from '../core/own-address.js';
import type { Secret } from '../core/secret.js';
import type { Service } from '../core/service.js';
import type { ForgetDependencies } from '../erasure/forget.js';
import type { Authorization } from '../oauth/authorization.js';
import type { Logger } from '../observability/logger.js';
import { countRefusedTokens } from '../observability/metrics.js';
import { type CompanyRoutesDependencies, companyRoutes } from './companies/companies.js';
import { type ConnectPagesDependencies, connectPages, mendConnectAddress } from './companies/connect.js';
import { connectLinkRoutes } from './companies/connect-links.js';
import { forgetRoutes } from './companies/forget.js';
import { heldTokenRoutes } from './companies/held-tokens.js';
import { quarantinedTokenRoutes } from './companies/quarantined-tokens.js';
import { quietHoursRoute } from './companies/quiet-hours.js';
import { recordRoutes } from './companies/records.js';
import { RefusedTokens } from './companies/refused-tokens.js';
import { type TryRouteDependencies, tryRoute } from './companies/try.js';
import { barrierRoutes } from './feed/barriers.js';
import { certificateRoutes, signingKeyRoutes } from './feed/certificates.js';
import { changeRoutes } from './feed/changes.js';
import { resourceRoutes } from './feed/resources.js';
import { schemaRoutes } from './feed/schema.js';
import { auditRoutes } from './operation/audit-entries.js';
import { type BudgetRoutesDependencies, budgetRoutes } from './operation/budget.js';
import { type HealthRoutesDependencies, healthRoutes } from './operation/health.js';
import { installationRoutes } from './operation/installation.js';
import { issueGuide } from './operation/issue-guide.js';
import { issueRoutes } from './operation/issues.js';
import { lastNightRoutes } from './operation/last-night.js';
import { listCountsRoute } from './operation/list-counts.js';
import { type MetricsRouteDependencies, metricsRoute } from './operation/metrics.js';
import { namedTokenRoutes } from './operation/named-tokens.js';
import { nightRoutes } from './operation/nights.js';
import { type NotificationRoutesDependencies, notificationRoutes } from './operation/notifications.js';
import { type OverviewRouteDependencies, overviewRoute } from './operation/overview.js';
import { type QueueRoutesDependencies, queueRoutes } from './operation/queue.js';
import { rekeyRoutes } from './operation/rekey.js';
import { type AccessRules, requireRoles, requireToken } from './plumbing/access.js';
import { type Authenticator, isToken } from './plumbing/authenticator.js';
import type { Caller } from './plumbing/caller.js';
import type { Drain } from './plumbing/drain.js';
import { type IdempotencyDependencies, takeIdempotencyKeys } from './plumbing/idempotency.js';
import { type AnswerUnknown, type ApiForPages, InProcessApi } from './plumbing/in-process-api.js';
import { LargeResponses } from './plumbing/large-responses.js';
import { openServer } from './plumbing/open-server.js';
import { describeApi } from './plumbing/openapi.js';
import { answerNotFound, asksForPage, refuseOnceStopping } from './plumbing/problem.js';
import { refuseUnknownQueries, watchMethods } from './plumbing/request-checks.js';
import { SERVER_LIMITS, type ServerLimits } from './plumbing/server-limits.js';
import { SocketLimit } from './plumbing/socket-limit.js';
import { holdRoutes } from './runs/holds.js';
import { rejectedRecordRoutes } from './runs/rejected-records.js';
import { runDiffRoutes } from './runs/run-diff.js';
import { runEventRoutes } from './runs/run-events.js';
import { runRoutes } from './runs/runs.js';
import { syncRoutes } from './runs/syncs.js';

export interface AdminDependencies
  extends CompanyRoutesDependencies,
    HealthRoutesDependencies,
    MetricsRouteDependencies,
    BudgetRoutesDependencies,
    NotificationRoutesDependencies,
    OverviewRouteDependencies,
    ForgetDependencies,
    QueueRoutesDependencies,
    TryRouteDependencies,
    Pick<ConnectPagesDependencies, 'operator'>,
    Pick<IdempotencyDependencies, 'vault'> {
  readonly host: string;
  /** 0 = any free port; `url` says which. */
  readonly port: number;
  /** The address of this server as seen from outside. */
  readonly publicUrl: URL;
  readonly clock: Clock;
  readonly authenticator: Authenticator;
  /** A token for scrapers, in place of one for the API; unset: anyone may scrape. */
  readonly metricsToken?: Secret | undefined;
  readonly logger: Logger;
  readonly authorization: Authorization;
  /** Default: none. */
  readonly drain?: Pick<Drain, 'closeConnections'>;
  /** The pages of the control room, which call the API. Default: none. */
  readonly pages?: (api: ApiForPages) => FastifyPluginAsync;
  /** Default: `SERVER_LIMITS`. */
  readonly limits?: ServerLimits;
}

export interface AdminServer extends Service {
  /** The address at which it listens, without a final slash; known once started. */
  readonly url: string;
}

/** How long a stop waits for the rest of a request, and how often it looks for idle connections. */
const UNSENT_MS = 1_000;

/** The admin API (docs/admin-api.md). `start` throws `port_in_use` if another process listens there. */
export function createAdminServer(deps: AdminDependencies): AdminServer {
  const { app, sockets } = build(deps);
  let starting: Promise<unknown> | undefined;
  let stopping: Promise<void> | undefined;

  async function stop(): Promise<void> {
    await starting?.catch(() => undefined);
    const timer = setInterval(() => {
      sockets.endUnsent();
      // Node 20 keeps a connection alive if its response was under way when the server was closed.
      app.server.closeIdleConnections();
    }, UNSENT_MS);
    await app.close();
    clearInterval(timer);
  }

  return {
    name: 'admin API',
    get url() {
      const { port } = (app.server.address() as AddressInfo | null) ?? deps;
      return ownAddress(deps.host, port).origin;
    },
    async start() {
      const { backlog } = deps.limits ?? SERVER_LIMITS;
      starting = app.listen({ host: deps.host, port: deps.port, backlog }).catch(refusedToListen(deps));
      await starting;
    },
    stop: () => (stopping ??= stop()),
  };
}

function build(deps: AdminDependencies): { app: FastifyInstance; sockets: SocketLimit } {
  const limits = deps.limits ?? SERVER_LIMITS;
  const sockets = new SocketLimit(limits);
  let showUnknown: AnswerUnknown | undefined;
  const app = openServer({
    logger: deps.logger,
    limits,
    sockets,
    rewriteAddress: mendConnectAddress,
    answerUnknown: (request, reply) =>
      showUnknown && asksForPage(request) ? showUnknown(request, reply) : answerNotFound(request, reply),
  });
  const closing = new AbortController();
  app.addHook('preClose', async () => closing.abort());
  refuseOnceStopping(app, closing.signal);
  deps.drain?.closeConnections(app);

  const refused = new RefusedTokens({ ...deps, counter: countRefusedTokens(deps.metrics), signal: closing.signal });
  const calls = new InProcessApi(app);
  const access: AccessRules = {
    authenticate: async (token) => calls.redeem(token) ?? deps.authenticator.authenticate(token),
    onRight: ({ raw }) => sockets.trust(raw),
    onWrong: ({ ip }) => refused.record(ip),
  };

  describeApi(app, addressedBy(deps));
  app.register(healthRoutes(deps));
  app.register(metricsRoute(deps, deps.metricsToken && orScraper(access, deps.metricsToken)));
  app.register(signingKeyRoutes(deps));
  app.register(connectPages(deps));
  if (deps.pages) {
    const onUnknown = (answer: AnswerUnknown) => void (showUnknown = answer);
    const authenticate = signIn(deps.authenticator, refused);
    app.register(deps.pages({ calls, authenticate, trust: access.onRight, onUnknown }));
  }
  app.register(issueGuide);
  app.register(
    async (api) => {
      requireToken(api, access);
      api.setNotFoundHandler(answerNotFound);
      requireRoles(api);
      refuseUnknownQueries(api);
      takeIdempotencyKeys(api, deps);
      const refuseOtherMethods = watchMethods(api);
      const largeResponses = new LargeResponses(deps.clock, limits);
      for (const routes of [
        overviewRoute,
        listCountsRoute,
        nightRoutes,
        lastNightRoutes,
        issueRoutes,
        companyRoutes,
        connectLinkRoutes,
        runRoutes,
        syncRoutes,
        runDiffRoutes,
        installationRoutes,
        heldTokenRoutes,
        rekeyRoutes,
        forgetRoutes,
        quietHoursRoute,
        recordRoutes,
        tryRoute,
        changeRoutes,
        barrierRoutes,
        certificateRoutes,
        holdRoutes,
        notificationRoutes,
        rejectedRecordRoutes,
        budgetRoutes,
        queueRoutes,
        quarantinedTokenRoutes,
        schemaRoutes,
        resourceRoutes,
        auditRoutes,
        namedTokenRoutes,
      ])
        await api.register(routes({ ...deps, largeResponses }));
      await api.register(runEventRoutes(deps, limits.streams));
      refuseOtherMethods();
    },
    { prefix: '/api' },
  );
  return { app, sockets };
}

/** Authenticates a token typed into a form. A wrong token is recorded as in a call. */
function signIn(authenticator: Authenticator, refused: RefusedTokens): ApiForPages['authenticate'] {
  return async (token, address) => {
    const caller = await authenticator.authenticate(token);
    if (!caller) refused.record(address);
    return caller;
  };
}

/** The rules for scrapers, who send the metrics token or any token of the API. */
function orScraper(access: AccessRules, metricsToken: Secret): AccessRules {
  const isMetricsToken = isToken(metricsToken);
  const scraper: Caller = { name: 'scraper', role: 'viewer' };
  return {
    ...access,
    authenticate: async (token) => (isMetricsToken(token) ? scraper : access.authenticate(token)),
  };
}

/** The outside address, unless it equals the address of the server: others may reach that by another name. */
function addressedBy({ publicUrl, host, port }: AdminDependencies): URL | undefined {
  return publicUrl.href === ownAddress(host, port).href ? undefined : publicUrl;
}

function refusedToListen({ host, port }: AdminDependencies): (error: NodeJS.ErrnoException) => never {
  return (error) => {
    if (error.code !== 'EADDRINUSE') throw error;
    throw new MusterError(
      'port_in_use',
      `Port ${port} on ${host} is taken: stop the process that listens there, or set PORT to another port.`,
      { cause: error },
    );
  };
}
