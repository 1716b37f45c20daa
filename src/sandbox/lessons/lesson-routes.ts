import type { FastifyInstance, FastifyRequest } from 'fastify';
import { MusterError } from '../../core/errors.js';
import { isSameSecret, type Secret } from '../../core/secret.js';
import { Refusal, sendJson, visitOf } from '../answer.js';
import type { Resource } from '../company-spec.js';
import type { Effect } from '../faults.js';
import type { Grants } from '../grants.js';
import type { World } from '../world.js';
import type { BegunLesson, Lessons, LessonTarget } from './lessons.js';

type Body = Readonly<Record<string, unknown>> | undefined;

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The list that a route of the sandbox's API serves. */
    readonly resource?: Resource;
  }
}

/** The effect of a lesson on a request for a list, or on a refresh. */
export function meetLesson(request: FastifyRequest, lessons: Lessons, grants: Grants): Effect | undefined {
  const { companyId, path } = visitOf(request).entry;
  const { resource } = request.routeOptions.config;
  if (companyId !== undefined && resource !== undefined) return lessons.meet(companyId, resource);
  if (path !== '/auth/token') return undefined;
  const { refresh_token: token } = (request.body ?? {}) as { refresh_token?: unknown };
  return typeof token === 'string' ? lessons.meetRefresh(grants.companyOf(token)) : undefined;
}

/** The routes of `muster sandbox break` and `mend`. They need the control token, since other programs on this machine reach the port too. */
export function lessonRoutes(app: FastifyInstance, lessons: Lessons, world: World, token: Secret): void {
  const preHandler = async (request: FastifyRequest) => requireToken(request, token);
  const model = ({ lesson, companyId, resource, until }: BegunLesson) => ({
    lesson: lesson.name,
    company_id: companyId,
    company: world.company(companyId).name,
    list: resource ?? null,
    until: until === undefined ? null : new Date(until).toISOString(),
  });

  app.get('/sandbox/lessons', { preHandler }, (_request, reply) => sendJson(reply, 200, { data: lessons.active.map(model) }));
  app.post<{ Params: { name: string }; Body: Body }>('/sandbox/lessons/:name/break', { preHandler }, ({ params, body }, reply) =>
    sendJson(reply, 200, model(lessons.break(params.name, targetOf(body)))),
  );
  app.post<{ Params: { name?: string } }>('/sandbox/lessons/mend', { preHandler }, (_request, reply) =>
    sendJson(reply, 200, { data: lessons.mend().map(model) }),
  );
  app.post<{ Params: { name: string } }>('/sandbox/lessons/:name/mend', { preHandler }, ({ params }, reply) =>
    sendJson(reply, 200, { data: lessons.mend(params.name).map(model) }),
  );
}

const LONGEST_SECONDS = 31 * 24 * 3_600;

function targetOf({ company_id: companyId, list: resource, seconds }: NonNullable<Body> = {}): LessonTarget {
  const isText = (value: unknown): value is string | undefined => value === undefined || typeof value === 'string';
  const isTime = (value: unknown): value is number | undefined =>
    value === undefined || (typeof value === 'number' && value > 0 && value <= LONGEST_SECONDS);
  if (isText(companyId) && isText(resource) && isTime(seconds)) return { companyId, resource, seconds };
  throw new MusterError(
    'invalid_request',
    'company_id and list must be texts, and seconds a number above 0 and of at most 31 days.',
  );
}

function requireToken(request: FastifyRequest, token: Secret): void {
  if (isSameSecret(request.headers.authorization ?? '', `Bearer ${token.reveal()}`)) return;
  throw new Refusal(401, 'unauthorized', 'Use `muster sandbox`, which has the token for lessons.');
}
