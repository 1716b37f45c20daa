import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { type ErrorCode, isMusterError } from '../core/errors.js';
import { translateDatabaseError } from '../db/sql-state.js';

export interface Problem {
  readonly status: number;
  readonly code: ErrorCode;
  readonly detail: string;
  /** Further members, such as an error's details. */
  readonly more?: Readonly<Record<string, unknown>>;
}

export const PROBLEM_TYPE = 'application/problem+json; charset=utf-8';

/** RFC 9457 problem details. */
export function problemBody({ status, code, detail, more }: Problem): Record<string, unknown> {
  const title = code.charAt(0).toUpperCase() + code.slice(1).replaceAll('_', ' ');
  return { ...more, type: `urn:muster:error:${code}`, title, status, detail, code };
}

export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  return reply.code(problem.status).header('content-type', PROBLEM_TYPE).serializer(JSON.stringify).send(problemBody(problem));
}

/** Every error that a route throws ends here. What was not raised on purpose shows nothing of itself. */
export function answerError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const problem = problemOf(error);
  if (problem.status >= 500)
    request.log.error({ err: error, route: request.routeOptions.url, code: problem.code }, 'A request failed');
  return sendProblem(reply, problem);
}

export function answerNotFound(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const detail = 'There is nothing at this address: /api/docs lists what there is.';
  request.log.debug({ method: request.method }, 'Unknown address');
  return sendProblem(reply, { status: 404, code: 'not_found', detail });
}

function problemOf(thrown: unknown): Problem {
  const error = translateDatabaseError(thrown);
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

/** Fastify's own messages quote the body; these do not. */
const REFUSALS: Readonly<Record<number, string>> = {
  400: 'The request could not be read: its address, its headers or its JSON is malformed.',
  413: 'The body is too large.',
  414: 'The address is too long.',
  415: 'The body must be JSON: send it with Content-Type: application/json.',
};
