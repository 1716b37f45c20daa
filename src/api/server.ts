import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Fastify, { type FastifyBaseLogger, type FastifyInstance, type FastifyPluginAsync, LogController } from 'fastify';
import type { Clock } from '../core/clock.js';
import { MusterError } from '../core/errors.js';
import { ownAddress } from '../core/own-address.js';
import type { Secret } from '../core/secret.js';
import type { Service } from '../core/service.js';
import type { Authorization } from '../oauth/authorization.js';
import type { ForgetDependencies } from '../mirror/forget.js';
import type { Logger } from '../observability/logger.js';
import { countRefusedTokens } from '../observability/metrics.js';
import { type AccessRules, requireRoles, requireToken } from './access.js';
import { auditRoutes } from './audit-entries.js';
import { type Authenticator, isToken } from './authenticator.js';
import { type BudgetRoutesDependencies, budgetRoutes } from './budget.js';
import { barrierRoutes } from './barriers.js';
import { certificateRoutes, signingKeyRoutes } from './certificates.js';
import { changeRoutes } from './changes.js';
import type { Caller } from './caller.js';
import { type CompanyRoutesDependencies, companyRoutes } from './companies.js';
import { connectPages, mendConnectAddress } from './connect.js';
import { connectLinkRoutes } from './connect-links.js';
import { type HealthRoutesDependencies, healthRoutes } from './health.js';
import { forgetRoutes } from './forget.js';
import { heldTokenRoutes } from './held-tokens.js';
import { holdRoutes } from './holds.js';
import { type AnswerUnknown, type ApiForPages, InnerCalls } from './inner-calls.js';
import { issueGuide } from './issue-guide.js';
import { issueRoutes } from './issues.js';
import { LargeAnswers } from './large-answers.js';
import { type IdempotencyDependencies, takeIdempotencyKeys } from './idempotency.js';
import { type MetricsRouteDependencies, metricsRoute } from './metrics.js';
import { namedTokenRoutes } from './named-tokens.js';
import { nightRoutes } from './nights.js';
import { type NotificationRoutesDependencies, notificationRoutes } from './notifications.js';
import { describeApi } from './openapi.js';
import { type OverviewRouteDependencies, overviewRoute } from './overview.js';
import { answerError, answerForNode, answerNotFound, answerUnreadable, asksForPage, refuseOnceStopping } from './problem.js';
import { quarantinedTokenRoutes } from './quarantined-tokens.js';
import { type QueueRoutesDependencies, queueRoutes } from './queue.js';
import { RefusedTokens } from './refused-tokens.js';
import { rejectedRecordRoutes } from './rejected-records.js';
import { installationRoutes } from './installation.js';
import { rekeyRoutes } from './rekey.js';
import { compileValidator, refuseUnknownQueries, takeOnlyJson, watchMethods } from './request-checks.js';
import { runEventRoutes } from './run-events.js';
import { runDiffRoutes } from './run-diff.js';
import { runRoutes } from './runs.js';
import { schemaRoutes } from './schema.js';
import { addSecurityHeaders } from './security-headers.js';
import { SERVER_LIMITS, type ServerLimits } from './server-limits.js';
import { SocketLimit } from './socket-limit.js';
import { type TryRouteDependencies, tryRoute } from './try.js';

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
    Pick<IdempotencyDependencies, 'vault'> {
  readonly host: string;
  /** 0 = any free one; `url` says which. */
  readonly port: number;
  /** Where the outside finds this server. */
  readonly publicUrl: URL;
  readonly clock: Clock;
  readonly authenticator: Authenticator;
  /** What scrapers may bear in place of a token for the API; unset: anybody may scrape. */
  readonly metricsToken?: Secret | undefined;
  readonly logger: Logger;
  readonly authorization: Authorization;
  /** The pages of the control room, which call the API; none unless given. */
  readonly pages?: (api: ApiForPages) => FastifyPluginAsync;
  /** `SERVER_LIMITS` unless said. */
  readonly limits?: ServerLimits;
}

export interface AdminServer extends Service {
  /** Where it listens, without a slash at the end; known once started. */
  readonly url: string;
}

/** Longer than proxies keep an idle connection: whoever ends it first must not be the one who is about to be asked. */
const KEEP_ALIVE_MS = 72_000;

/** How long a stop waits for the rest of a request, and how often it looks for connections that nobody uses any more. */
const UNSENT_MS = 1_000;

/** The admin API (docs/admin-api.md). `start` throws `port_in_use` when somebody else listens there. */
export function createAdminServer(deps: AdminDependencies): AdminServer {
  const { app, sockets } = build(deps);
  let starting: Promise<unknown> | undefined;
  let stopping: Promise<void> | undefined;

  async function stop(): Promise<void> {
    await starting?.catch(() => undefined);
    const timer = setInterval(() => {
      sockets.endUnsent();
      // Node 20 keeps a connection alive whose answer was under way when the server was closed.
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
  const app = openServer(deps.logger, limits, sockets, (request, reply) =>
    showUnknown && asksForPage(request) ? showUnknown(request, reply) : answerNotFound(request, reply),
  );
  const closing = new AbortController();
  app.addHook('preClose', async () => closing.abort());
  refuseOnceStopping(app, closing.signal);

  const refused = new RefusedTokens({ ...deps, counter: countRefusedTokens(deps.metrics), signal: closing.signal });
  const calls = new InnerCalls(app);
  const access: AccessRules = {
    authenticate: async (token) => calls.redeem(token) ?? deps.authenticator.authenticate(token),
    onRight: ({ raw }) => sockets.trust(raw),
    onWrong: ({ ip }) => refused.note(ip),
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
      const largeAnswers = new LargeAnswers(deps.clock, limits);
      for (const routes of [
        overviewRoute,
        nightRoutes,
        issueRoutes,
        companyRoutes,
        connectLinkRoutes,
        runRoutes,
        runDiffRoutes,
        installationRoutes,
        heldTokenRoutes,
        rekeyRoutes,
        forgetRoutes,
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
        auditRoutes,
        namedTokenRoutes,
      ])
        await api.register(routes({ ...deps, largeAnswers }));
      await api.register(runEventRoutes(deps, limits.streams));
      refuseOtherMethods();
    },
    { prefix: '/api' },
  );
  return { app, sockets };
}

/** Says who bears a token that was typed into a form. A wrong one leaves the trace that it leaves in a call. */
function signIn(authenticator: Authenticator, refused: RefusedTokens): ApiForPages['authenticate'] {
  return async (token, address) => {
    const caller = await authenticator.authenticate(token);
    if (!caller) refused.note(address);
    return caller;
  };
}

/** The rules for scrapers: they bear a token of their own, or any that the API takes. */
function orScraper(access: AccessRules, metricsToken: Secret): AccessRules {
  const isMetricsToken = isToken(metricsToken);
  const scraper: Caller = { name: 'scraper', role: 'viewer' };
  return {
    ...access,
    authenticate: async (token) => (isMetricsToken(token) ? scraper : access.authenticate(token)),
  };
}

/** A server without routes: what it takes for a request, and how it answers what is none. */
function openServer(
  logger: FastifyBaseLogger,
  limits: ServerLimits,
  sockets: SocketLimit,
  answerUnknown: AnswerUnknown,
): FastifyInstance {
  const { headersMs: headersTimeout, requestMs: requestTimeout, checkMs: connectionsCheckingInterval } = limits;
  const app = Fastify({
    loggerInstance: logger,
    // Fastify's own lines hold the address with its query, in which people put tokens.
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: limits.bodyBytes,
    serverFactory: (handler) => {
      // `answerForNode` answers an absent host, with a problem.
      const options = {
        requireHostHeader: false,
        headersTimeout,
        requestTimeout,
        connectionsCheckingInterval,
        keepAliveTimeout: KEEP_ALIVE_MS,
      };
      const server = createServer(options, (request, response) => {
        if (sockets.admit(request, response)) handler(request, response);
      });
      sockets.guard(server);
      return server.setTimeout(limits.silenceMs);
    },
    clientErrorHandler: (error, socket) => answerUnreadable(error, socket, sockets.lastResponseOn(socket)),
    // `refuseOnceStopping` does it, with a problem.
    return503OnClosing: false,
    rewriteUrl: ({ url = '/' }) => mendConnectAddress(url),
    routerOptions: { ignoreTrailingSlash: true },
    // An address that no router takes: people see the page of an unknown one.
    frameworkErrors: async (error, request, reply) => {
      try {
        await (asksForPage(request) ? answerUnknown(request, reply) : answerError(error, request, reply));
      } catch (failure) {
        answerError(failure, request, reply);
      }
    },
  });
  app.setValidatorCompiler(compileValidator);
  // Answers are typed by their models already.
  app.setSerializerCompiler(() => JSON.stringify);
  app.decorateRequest('caller');
  app.setErrorHandler(answerError);
  app.setNotFoundHandler(answerUnknown);
  // After the hooks that ask for a token, and before the body is read.
  app.addHook('preParsing', async (request, reply) => {
    if (request.is404) await answerUnknown(request, reply);
  });
  app.addHook('onResponse', async (request, reply) => {
    request.log.debug(
      { method: request.method, route: request.routeOptions.url, status: reply.statusCode, ms: reply.elapsedTime },
      'Answered',
    );
  });
  answerForNode(app);
  takeOnlyJson(app);
  addSecurityHeaders(app);
  return app;
}

/** The outside address, unless it is where the server listens: others may reach that by another name. */
function addressedBy({ publicUrl, host, port }: AdminDependencies): URL | undefined {
  return publicUrl.href === ownAddress(host, port).href ? undefined : publicUrl;
}

function refusedToListen({ host, port }: AdminDependencies): (error: NodeJS.ErrnoException) => never {
  return (error) => {
    if (error.code !== 'EADDRINUSE') throw error;
    throw new MusterError(
      'port_in_use',
      `Port ${port} on ${host} is taken: stop what listens there, or set PORT to another one.`,
      { cause: error },
    );
  };
}
