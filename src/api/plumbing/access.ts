import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Caller, mayAct } from './caller.js';
import { sendProblem } from './problem.js';

export interface AccessRules {
  /** Finds the caller who has this token; undefined for a wrong one. */
  readonly authenticate: (token: string) => Promise<Caller | undefined>;
  /** Called for every request with a right token. */
  readonly onRight: (request: FastifyRequest) => void;
  /** Called for every request with a wrong token. */
  readonly onWrong: (request: FastifyRequest) => void;
}

/**
 * Refuses requests to this scope without a right token, and sets `request.caller`. The refusal is sent before the body is read, and does not say
 * whether the address exists.
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

/** Returns the one bearer token of a request. Two Authorization headers count as none, since a proxy may have added one of them. */
function bearerToken({ raw }: FastifyRequest): string | undefined {
  const [header = '', second] = raw.headersDistinct.authorization ?? [];
  return second === undefined ? /^bearer +(\S+)$/i.exec(header)?.[1] : undefined;
}

function refuse(reply: FastifyReply): FastifyReply {
  reply.header('www-authenticate', 'Bearer');
  return sendProblem(reply, { status: 401, code: 'unauthorized', detail: 'This call needs a bearer token.' });
}

/**
 * Holds every caller of this scope to the role that the route declares (`config: { role: 'operator' }`). To be called after `requireToken`. Throws for a
 * route that declares none, so that no route is open by mistake. The OpenAPI document gets the role.
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
