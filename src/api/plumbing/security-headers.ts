import type { FastifyInstance } from 'fastify';

/**
 * What browsers are told of every answer. Answers are for programs: a browser that is led to one runs and loads nothing of it; pages set policies
 * of their own. Constants, and not made anew for each answer by a library, which took a third of the time of a short one. No
 * Strict-Transport-Security: whether a name is always reached by TLS is for whoever speaks TLS to say, the proxy (docs/requirements.md).
 */
const HEADERS = {
  'content-security-policy': "default-src 'none'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
};

/** Adds the headers to every answer, before any route sets its own. */
export function addSecurityHeaders(app: FastifyInstance): void {
  app.addHook('onRequest', async (_request, reply) => {
    reply.headers(HEADERS);
  });
}
