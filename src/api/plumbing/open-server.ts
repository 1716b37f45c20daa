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
  /** Answers a request to an address without a route. */
  readonly answerUnknown: AnswerUnknown;
}

/** Longer than proxies keep an idle connection: whoever ends it first must not be the one who is about to be asked. */
const KEEP_ALIVE_MS = 72_000;

/** Opens an HTTP server without routes: it decides what counts as a request, and answers everything else. */
export function openServer({ logger, limits, sockets, rewriteAddress, answerUnknown }: OpenServerOptions): FastifyInstance {
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
    rewriteUrl: ({ url = '/' }) => rewriteAddress(url),
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
