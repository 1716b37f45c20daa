import type { FastifyInstance, HTTPMethods } from 'fastify';
import { sendProblem } from './problem.js';

const METHODS: readonly HTTPMethods[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

/** Watches the routes of a scope; the function that it returns adds, to each address, 405 for the methods it does not take. */
export function watchMethods(api: FastifyInstance): () => void {
  const taken = new Map<string, Set<HTTPMethods>>();
  api.addHook('onRoute', ({ method, url }) => {
    const methods = taken.get(url) ?? new Set();
    for (const each of [method].flat()) methods.add(each);
    taken.set(url, methods);
  });

  return () => {
    for (const [url, methods] of taken) {
      const allow = [...methods].join(', ');
      api.route({
        method: METHODS.filter((method) => !methods.has(method)),
        url: url.slice(api.prefix.length),
        schema: { hide: true },
        onRequest: async (_request, reply) =>
          sendProblem(reply.header('allow', allow), {
            status: 405,
            code: 'invalid_request',
            detail: `This address takes ${allow} only.`,
          }),
        handler: () => undefined,
      });
    }
  };
}
