import { createServer } from 'node:http';
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify';
import type { AnswerUnknown } from './in-process-api.js';
import { answerError, answerForNode, answerUnreadable, asksForPage } from './problem.js';
import { compileValidator, takeOnlyJson } from './request-checks.js';
import { addSecurityHeaders } from './security-headers.js';
import type { ServerLimits } from './server-limits.js';
import type { SocketLimit } from './socket-limit.js';

export interface OpenServerOptions {
  readonly logger: FastifyBaseLogger;
  readonly limits: ServerLimits;
  readonly sockets: SocketLimit;
  /** Corrects an address before it is routed. */
  readonly rewriteAddress: (url: string) => string;
  /** Responds to a request whose address has no route. */
  readonly answerUnknown: AnswerUnknown;
}

/** Longer than proxies keep an idle connection: if Muster closed it first, the proxy's next request could be lost. */
const KEEP_ALIVE_MS = 72_000;

/** Opens an HTTP server without routes: it decides what counts as a request, and answers everything else. */
export function openServer({ logger, limits, sockets, rewriteAddress, answerUnknown }: OpenServerOptions): FastifyInstance {
  const { headersMs: headersTimeout, requestMs: requestTimeout, checkMs: connectionsCheckingInterval } = limits;
  const app = Fastify({
    loggerInstance: logger,
    // Fastify's own log lines hold the query, in which people put tokens.
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: limits.bodyBytes,
    serverFactory: (handler) => {
      // `answerForNode` responds to an absent host with a problem.
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
    // `refuseOnceStopping` responds with a problem instead.
    return503OnClosing: false,
    rewriteUrl: ({ url = '/' }) => rewriteAddress(url),
    routerOptions: { ignoreTrailingSlash: true },
    // The router takes no such address: browsers get the page for unknown addresses.
    frameworkErrors: async (error, request, reply) => {
      try {
        await (asksForPage(request) ? answerUnknown(request, reply) : answerError(error, request, reply));
      } catch (failure) {
        answerError(failure, request, reply);
      }
    },
  });
  app.setValidatorCompiler(compileValidator);
  // The types of the models hold responses to their form already.
  app.setSerializerCompiler(() => JSON.stringify);
  app.decorateRequest('caller');
  app.setErrorHandler(answerError);
  app.setNotFoundHandler(answerUnknown);
  // This runs after the hooks that require a token, and before the body is read.
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
