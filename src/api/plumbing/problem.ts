import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type ErrorCode, isMusterError } from '../../core/errors.js';
import { explainDatabaseError } from '../../db/connection/sql-state.js';

interface Problem {
  readonly status: number;
  readonly code: ErrorCode;
  readonly detail: string;
  /** Further members, such as an error's details. */
  readonly more?: Readonly<Record<string, unknown>>;
}

const PROBLEM_TYPE = 'application/problem+json; charset=utf-8';

/** RFC 9457 problem details. */
function problemBody({ status, code, detail, more }: Problem): Record<string, unknown> {
  const title = code.charAt(0).toUpperCase() + code.slice(1).replaceAll('_', ' ');
  return { ...more, type: `urn:muster:error:${code}`, title, status, detail, code };
}

export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  return reply.code(problem.status).header('content-type', PROBLEM_TYPE).serializer(JSON.stringify).send(problemBody(problem));
}

/** Responds to every error that a route throws. An unexpected error reveals nothing of itself. */
export function answerError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const problem = problemOf(error);
  // `overloaded` is no failure, and a flood must not fill the log.
  if (problem.status >= 500 && problem.code !== 'overloaded')
    request.log.error({ err: error, route: request.routeOptions.url, code: problem.code }, 'A request failed');
  return sendProblem(reply, problem);
}

export function answerNotFound(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const detail = 'There is nothing at this address: /api/docs lists what there is.';
  request.log.debug({ method: request.method }, 'Unknown address');
  return sendProblem(reply, { status: 404, code: 'not_found', detail });
}

/** Whether a browser asks for a page, rather than a program for the API. */
export function asksForPage({ method, url, headers }: FastifyRequest): boolean {
  const isRead = method === 'GET' || method === 'HEAD';
  return isRead && headers.accept?.includes('text/html') === true && !/^\/api(?:[/?]|$)/.test(url);
}

/** Describes an error. Of an unexpected one it says only that it was unexpected. */
export function problemOf(thrown: unknown): Problem {
  const error = explainDatabaseError(thrown);
  if (isMusterError(error)) return { status: error.status, code: error.code, detail: error.message, more: error.details };
  const status = (error as Partial<FastifyError> | null)?.statusCode ?? 500;
  if (status >= 400 && status < 500)
    return { status, code: 'invalid_request', detail: REFUSALS[status] ?? 'The request could not be read.' };
  return {
    status: 500,
    code: 'internal_error',
    detail: 'Something failed inside Muster that should not have: its log says more.',
  };
}

/** These texts replace Fastify's own, which quote the body. */
const REFUSALS: Readonly<Record<number, string>> = {
  400: 'The request could not be read: its address, its headers or its JSON is malformed.',
  413: 'The body is too large.',
  414: 'The address is too long.',
  415: 'The body must be JSON: send it with Content-Type: application/json.',
};

/**
 * Responds to bytes that are too malformed to become a request. They are not logged, since they may hold a token. `last` is the newest response that was
 * begun on the connection, if any.
 */
export function answerUnreadable({ code }: NodeJS.ErrnoException, socket: Socket, last: ServerResponse | undefined): void {
  if (code === 'ECONNRESET' || socket.destroyed) return;
  if (last && !mayAnswerAfter(last)) {
    socket.destroy();
    return;
  }
  const { status, detail } = UNREADABLE[code ?? ''] ?? { status: 400, detail: 'This is not HTTP as RFC 9112 has it.' };
  const body = JSON.stringify(problemBody({ status, code: 'invalid_request', detail }));
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    `Content-Type: ${PROBLEM_TYPE}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ];
  if (socket.writable) socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
  // The end of the message is unknown: the bytes that follow must not be taken for a request.
  socket.destroySoon();
}

/**
 * Whether a problem would be taken for the response to the unreadable bytes. It would not be while another response is under way, after the request that
 * broke off has had its response, or while an earlier request waits for its own.
 */
function mayAnswerAfter({ headersSent, writableFinished, req }: ServerResponse): boolean {
  return headersSent ? writableFinished && req.complete : !req.complete;
}

const UNREADABLE: Readonly<Record<string, Pick<Problem, 'status' | 'detail'>>> = {
  HPE_HEADER_OVERFLOW: { status: 431, detail: 'The headers are too large.' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, detail: 'The request did not come to its end in time.' },
};

/** A name or an address, with a port or without. An empty one is allowed where an address has none. */
const HOST = /^(?:[\w\-.~!$&'()*+,;=%]*|\[[\da-f:.]+\])(?::\d*)?$/i;

/**
 * Responds with a problem to a missing, second or malformed Host, and to an unknown Expect. Node.js would refuse a missing Host and an unknown Expect
 * without a body; of two Hosts it takes the first, where a proxy may have taken the second.
 */
export function answerForNode(app: FastifyInstance): void {
  app.addHook('onRequest', async ({ raw }, reply) => {
    // An injected call has no such list yet (in-process-api.ts).
    const hosts = raw.headersDistinct?.['host'] ?? [raw.headers.host ?? []].flat();
    const isTold = hosts.length === 1 || (hosts.length === 0 && raw.httpVersion !== '1.1');
    if (isTold && hosts.every((host) => HOST.test(host))) return undefined;
    return sendProblem(reply, { status: 400, code: 'invalid_request', detail: 'A request of HTTP/1.1 names its host, once.' });
  });
  app.server.on('checkExpectation', (_request, response) => {
    const detail = 'Nothing but 100-continue can be expected.';
    const body = JSON.stringify(problemBody({ status: 417, code: 'invalid_request', detail }));
    response.writeHead(417, { 'content-type': PROBLEM_TYPE, 'content-length': Buffer.byteLength(body) }).end(body);
  });
}

/** The detail for a request that comes too late. */
export const STOPPING = 'The process is being stopped: ask again, and another one answers, or the next one.';

/** Refuses new requests on open connections once the process is stopping: another stream would keep it from ending. */
export function refuseOnceStopping(app: FastifyInstance, signal: AbortSignal): void {
  app.addHook('onRequest', async (_request, reply) => {
    if (!signal.aborted) return undefined;
    return sendProblem(reply, { status: 503, code: 'stopping', detail: STOPPING });
  });
}
