import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Caller, mayAct } from './caller.js';
import { sendProblem } from './problem.js';

export interface AccessRules {
  /** Who bears this token; undefined where it is a wrong one. */
  readonly authenticate: (token: string) => Promise<Caller | undefined>;
  /** Told of every request that bears a right token. */
  readonly onRight: (request: FastifyRequest) => void;
  /** Told of every request that bears a wrong one. */
  readonly onWrong: (request: FastifyRequest) => void;
}

/**
 * Lets nobody into this scope without a right token, and sets `request.caller`. The answer comes before the body is read, and says nothing of
 * the address.
 */
export function requireToken(api: FastifyInstance, { authenticate, onRight, onWrong }: AccessRules): void {
  api.addHook('onRequest', async (request, reply) => {
    const token = bearerToken(request);
    const caller = token === undefined ? undefined : await authenticate(token);
    if (caller) {
      request.caller = caller;
      return onRight(request);
    }
    if (request.headers.authorization !== undefined) onWrong(request);
    return refuse(reply);
  });
}

/** The one bearer token of a request. Of two Authorization headers neither counts: who may have added the second is not known. */
function bearerToken({ raw }: FastifyRequest): string | undefined {
  const [header = '', second] = raw.headersDistinct.authorization ?? [];
  return second === undefined ? /^bearer +(\S+)$/i.exec(header)?.[1] : undefined;
}

function refuse(reply: FastifyReply): FastifyReply {
  reply.header('www-authenticate', 'Bearer');
  return sendProblem(reply, { status: 401, code: 'unauthorized', detail: 'This call needs a bearer token.' });
}

/**
 * Holds every caller of this scope to the role that the route declares (`config: { role: 'operator' }`), behind `requireToken`. Throws for a
 * route that declares none: nothing is open because somebody forgot. The OpenAPI document gets the role.
 */
export function requireRoles(api: FastifyInstance): void {
  api.addHook('onRoute', (route) => {
    const role = route.config?.role;
    if (role === undefined) throw new Error(`${String(route.method)} ${route.url} declares no role: add config: { role: … }.`);
    const { description, ...schema } = route.schema ?? {};
    route.schema = {
      ...schema,
      description: [description, `Needs the role ${role}.`].filter(Boolean).join(' '),
      security: [{ bearer: [role] }],
    };
  });
  api.addHook('onRequest', async ({ is404, caller, routeOptions: { config } }, reply) => {
    const needed = config.role ?? 'admin';
    if (is404 || mayAct(caller, needed)) return undefined;
    return sendProblem(reply, {
      status: 403,
      code: 'forbidden',
      detail: `This call needs the role ${needed}; your token has the role ${caller.role}.`,
      more: { required_role: needed },
    });
  });
}
