import swagger from '@fastify/swagger';
import type { FastifyInstance } from 'fastify';
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod';
import { type ApiDocument, docsPage } from './docs-page.js';
import { watchMethods } from './other-methods.js';
import { VERSION } from './version.js';

/** Describes every route that is registered after it, at /api/openapi.json and, for people, at /api/docs. Open: nothing secret is in them. */
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
    // The document is whole once every route is registered, and does not change afterwards.
    let page: string | undefined;
    open.get('/api/openapi.json', { schema: { hide: true } }, async (_request, reply) =>
      reply.type('application/json').send(app.swagger()),
    );
    open.get('/api/docs', { schema: { hide: true } }, async (_request, reply) => {
      page ??= docsPage(app.swagger() as unknown as ApiDocument);
      return reply.type('text/html; charset=utf-8').send(page);
    });
    // Whoever opens the bare address wants to see something.
    open.get('/', { schema: { hide: true } }, async (_request, reply) => reply.redirect('/api/docs', 302));
    refuseOtherMethods();
  });
}

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

/** The transform lists every model a second time, as an input; only what a route refers to is worth reading. */
function withoutUnusedInputs<T extends object>(document: T): T {
  const { components, ...rest } = document as { components?: { schemas?: Record<string, unknown> } };
  const routes = JSON.stringify(rest);
  const used = Object.entries(components?.schemas ?? {}).filter(
    ([name]) => !name.endsWith('Input') || routes.includes(`"#/components/schemas/${name}"`),
  );
  return { ...rest, components: { ...components, schemas: Object.fromEntries(used) } } as T;
}
