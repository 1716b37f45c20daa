import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod';
import { VERSION } from '../core/version.js';
import { watchMethods } from './request-checks.js';

/**
 * Describes every route that is registered after it: at /api/openapi.json, and for people at /api/docs. Both are open, for nothing secret
 * is in them.
 */
export function describeApi(app: FastifyInstance): void {
  app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Muster admin API', version: VERSION, description: DESCRIPTION },
      servers: [{ url: '/', description: 'The Muster that gave this document.' }],
      tags: TAGS,
      components: {
        securitySchemes: { bearer: { type: 'http', scheme: 'bearer', description: 'The token of MUSTER_ADMIN_TOKEN.' } },
      },
      security: [{ bearer: [] }],
    },
    transform: jsonSchemaTransform,
    transformObject: (document) => withoutUnusedInputs(jsonSchemaTransformObject(document)),
  });

  app.register(async (open) => {
    const refuseOtherMethods = watchMethods(open);
    open.get('/api/openapi.json', { schema: { hide: true } }, async (_request, reply) =>
      reply.type('application/json').send(app.swagger()),
    );
    await open.register(swaggerUi, {
      routePrefix: '/api/docs',
      // The page's links are relative, so that a proxy may put a path before them. From /api/docs they begin in /api.
      indexPrefix: '..',
      uiHooks: {
        onRequest: async ({ url }, reply) => (/\/docs\/(\?|$)/.test(url) ? reply.redirect('../docs', 302) : undefined),
      },
      theme: { title: 'Muster admin API' },
      // The standalone layout has a bar that loads other documents, and a style element that the content policy refuses.
      uiConfig: { layout: 'BaseLayout' },
      staticCSP: CONTENT_POLICY,
    });
    // A person who opens the bare address is shown the API.
    open.get('/', { schema: { hide: true } }, async (_request, reply) => reply.redirect('/api/docs', 302));
    refuseOtherMethods();
  });
}

/** Scripts and styles are files of this server alone. Icons stand in the style sheet as data. */
const CONTENT_POLICY = {
  'default-src': "'none'",
  'script-src': "'self'",
  'style-src': "'self'",
  'img-src': ["'self'", 'data:'],
  'connect-src': "'self'",
  'form-action': "'none'",
  'frame-ancestors': "'none'",
  'base-uri': "'none'",
};

const DESCRIPTION =
  'JSON over HTTP. Every call under /api carries `Authorization: Bearer <token>`. Errors are `application/problem+json` (RFC 9457) with a stable `code`. Lists give `next_cursor`: pass it back as `cursor` for the next page; null is the end.';

const TAGS = [
  { name: 'companies', description: 'Onboarding, authorization state, freshness.' },
  { name: 'runs', description: 'Syncs, their progress and their proofs.' },
  { name: 'changes', description: 'The change feed.' },
  { name: 'holds', description: 'Deletions that wait for a person.' },
  { name: 'notifications', description: 'What the webhook is told, and what became of it.' },
  { name: 'operation', description: 'For probes and scrapers.' },
];

/** The transform lists every model a second time, as an input: a model stays out that no route refers to. */
function withoutUnusedInputs<T extends object>(document: T): T {
  const { components, ...rest } = document as { components?: { schemas?: Record<string, unknown> } };
  const routes = JSON.stringify(rest);
  const used = Object.entries(components?.schemas ?? {}).filter(
    ([name]) => !name.endsWith('Input') || routes.includes(`"#/components/schemas/${name}"`),
  );
  return { ...rest, components: { ...components, schemas: Object.fromEntries(used) } } as T;
}
