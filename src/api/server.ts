import type { IncomingMessage, Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import helmet from '@fastify/helmet';
import rateLimit from '@fastify/rate-limit';
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify';
import { MusterError } from '../core/errors.js';
import { ownAddress } from '../core/own-address.js';
import type { Secret } from '../core/secret.js';
import type { Service } from '../core/service.js';
import type { Authorization } from '../oauth/authorization.js';
import type { Logger } from '../observability/logger.js';
import { requireToken } from './access.js';
import { changeRoutes } from './changes.js';
import { type CompanyRoutesDependencies, companyRoutes } from './companies.js';
import { connectPages } from './connect.js';
import { connectLinkRoutes } from './connect-links.js';
import { type HealthRoutesDependencies, healthRoutes } from './health.js';
import { holdRoutes } from './holds.js';
import { notificationRoutes } from './notifications.js';
import { describeApi } from './openapi.js';
import { answerError, answerForNode, answerNotFound, answerUnreadable } from './problem.js';
import { rekeyRoutes } from './rekey.js';
import { compileValidator, refuseUnknownQueries, takeOnlyJson, watchMethods } from './request-checks.js';
import { runEventRoutes } from './run-events.js';
import { runRoutes } from './runs.js';

export interface AdminDependencies extends CompanyRoutesDependencies, HealthRoutesDependencies {
  readonly host: string;
  /** 0 = any free one; `url` says which. */
  readonly port: number;
  readonly adminToken: Secret;
  readonly logger: Logger;
  readonly authorization: Authorization;
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
    // `answerForNode` answers an absent host, with a problem.
    http: { requireHostHeader: false },
    clientErrorHandler: answerUnreadable,
    routerOptions: { ignoreTrailingSlash: true },
    frameworkErrors: (error, request, reply) => void answerError(error, request, reply as never),
  });
  app.setValidatorCompiler(compileValidator);
  // Answers are typed by their models already.
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

/** Answers are for programs: a browser that is led to one runs and loads nothing of it. Pages set policies of their own. */
const CONTENT_POLICY = { defaultSrc: ["'none'"], formAction: ["'none'"], frameAncestors: ["'none'"], baseUri: ["'none'"] };

/**
 * Watches for connections on which no whole request has come. Nobody waits for an answer on them, yet a server that is closed stays open
 * for them. The returned function ends them.
 */
function watchUnsentRequests(server: Server): () => void {
  const requests = new Map<Socket, IncomingMessage | undefined>();
  server.on('connection', (socket) => {
    requests.set(socket, undefined);
    socket.on('close', () => requests.delete(socket));
  });
  server.on('request', (request) => requests.set(request.socket, request));
  return () => {
    for (const [socket, request] of requests) if (!request?.complete) socket.destroy();
  };
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
