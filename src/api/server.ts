import { createHash } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import helmet from '@fastify/helmet';
import rateLimit from '@fastify/rate-limit';
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify';
import type { Registry } from 'prom-client';
import { MusterError } from '../core/errors.js';
import { ownAddress } from '../core/own-address.js';
import type { Secret } from '../core/secret.js';
import type { Service } from '../core/service.js';
import type { Logger } from '../observability/logger.js';
import { requireToken } from './access.js';
import { type ChangeRoutesDependencies, changeRoutes } from './changes.js';
import { type CompanyRoutesDependencies, companyRoutes } from './companies.js';
import { type ConnectPagesDependencies, connectPages } from './connect.js';
import { type ConnectLinkRoutesDependencies, connectLinkRoutes } from './connect-links.js';
import { DOCS_STYLE } from './docs-page.js';
import { healthRoutes } from './health.js';
import { holdRoutes } from './holds.js';
import { notificationRoutes } from './notifications.js';
import { describeApi } from './openapi.js';
import { watchMethods } from './other-methods.js';
import type { HoldsPort, ReadinessCheck } from './ports.js';
import { answerError, answerNotFound } from './problem.js';
import { refuseUnknownQueries } from './query.js';
import { rekeyRoutes } from './rekey.js';
import { runEventRoutes } from './run-events.js';
import { runRoutes } from './runs.js';
import { syncRoutes } from './syncs.js';
import { answerForNode, answerUnreadable } from './unreadable.js';
import { watchUnsentRequests } from './unsent-requests.js';
import { compileValidator } from './validator.js';

export interface AdminDependencies
  extends CompanyRoutesDependencies,
    ChangeRoutesDependencies,
    ConnectLinkRoutesDependencies,
    ConnectPagesDependencies {
  readonly host: string;
  /** 0 = any free one; `url` says which. */
  readonly port: number;
  readonly adminToken: Secret;
  readonly logger: Logger;
  readonly holds: HoldsPort;
  readonly readiness: readonly ReadinessCheck[];
  readonly metrics: Registry;
}

export interface AdminServer extends Service {
  /** Where it listens, without a slash at the end; known once started. */
  readonly url: string;
}

/** The largest body is an onboarding with its refresh token. */
const BODY_LIMIT = 256 * 1024;

/** How long a stop waits for the rest of a request. */
const UNSENT_MS = 1_000;

/** The admin API (docs/admin-api.md). `start` throws `port_in_use` when somebody else listens there. */
export function createAdminServer(deps: AdminDependencies): AdminServer {
  const app = build(deps);
  const endUnsent = watchUnsentRequests(app.server);
  let starting: Promise<unknown> | undefined;
  let stopping: Promise<void> | undefined;

  async function stop(): Promise<void> {
    await starting?.catch(() => undefined);
    const timer = setInterval(endUnsent, UNSENT_MS);
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
      starting = app.listen({ host: deps.host, port: deps.port }).catch(refusedToListen(deps));
      await starting;
    },
    stop: () => (stopping ??= stop()),
  };
}

function build(deps: AdminDependencies): FastifyInstance {
  const loggerInstance: FastifyBaseLogger = deps.logger;
  const app = Fastify({
    loggerInstance,
    // Fastify's own lines hold the address with its query, in which people put tokens.
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: BODY_LIMIT,
    // An absent host is answered by us, as a problem.
    http: { requireHostHeader: false },
    clientErrorHandler: answerUnreadable,
    routerOptions: { ignoreTrailingSlash: true },
    frameworkErrors: (error, request, reply) => void answerError(error, request, reply as never),
  });
  app.setValidatorCompiler(compileValidator);
  // Answers are typed by their models already; checking each again would only cost.
  app.setSerializerCompiler(() => JSON.stringify);
  app.setErrorHandler(answerError);
  app.setNotFoundHandler(answerNotFound);
  app.addHook('onResponse', async (request, reply) => {
    request.log.debug(
      { method: request.method, route: request.routeOptions.url, status: reply.statusCode, ms: reply.elapsedTime },
      'Answered',
    );
  });
  answerForNode(app);
  takeOnlyJson(app);
  app.register(helmet, { contentSecurityPolicy: { useDefaults: false, directives: CONTENT_POLICY } });
  app.register(rateLimit, { global: false });

  describeApi(app);
  app.register(healthRoutes(deps));
  app.register(connectPages(deps));
  app.register(
    async (api) => {
      requireToken(api, deps.adminToken);
      api.setNotFoundHandler(answerNotFound);
      refuseUnknownQueries(api);
      const refuseOtherMethods = watchMethods(api);
      for (const routes of [
        companyRoutes,
        connectLinkRoutes,
        runRoutes,
        runEventRoutes,
        rekeyRoutes,
        syncRoutes,
        changeRoutes,
        holdRoutes,
        notificationRoutes,
      ])
        await api.register(routes(deps));
      refuseOtherMethods();
    },
    { prefix: '/api' },
  );
  return app;
}

/** Pages come from here alone and run no script. */
const CONTENT_POLICY = {
  defaultSrc: ["'none'"],
  styleSrc: ["'self'", `'sha256-${createHash('sha256').update(DOCS_STYLE).digest('base64')}'`],
  imgSrc: ["'self'"],
  formAction: ["'self'"],
  frameAncestors: ["'none'"],
  baseUri: ["'none'"],
};

/** JSON alone is taken; `Content-Type: application/json` with nothing after it means what no body means. */
function takeOnlyJson(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body === '') done(null, undefined);
    else void parse(request, body as string, done);
  });
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
