import { readFileSync } from 'node:fs';
import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod';
import { withoutSlash } from '../../core/own-address.js';
import { VERSION } from '../../core/version.js';
import { type DocumentedApi, declareProblems } from './problem-model.js';
import { watchMethods } from './request-checks.js';

/**
 * Describes every route that is registered after it: at /api/openapi.json, and for people at /api/docs. Both are open, since they hold no secret.
 * `publicUrl` is the outside address where it differs from the process's own: a proxy may put a path before each address.
 */
export function describeApi(app: FastifyInstance, publicUrl: URL | undefined): void {
  app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Muster admin API',
        version: VERSION,
        description: DESCRIPTION,
        license: { name: 'Apache License 2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: publicUrl ? withoutSlash(publicUrl) : '/', description: 'The Muster that gave this document.' }],
      tags: TAGS,
      components: {
        securitySchemes: {
          bearer: {
            type: 'http',
            scheme: 'bearer',
            description: 'A named token, or that of MUSTER_ADMIN_TOKEN. Each operation names the least role that may call it.',
          },
        },
      },
      security: [{ bearer: [] }],
    },
    transform: jsonSchemaTransform,
    transformObject: (document) =>
      addExamples(allowEmptyQueries(describeAnswers(withoutUnusedInputs(jsonSchemaTransformObject(document))))),
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
      theme: { title: 'Muster admin API', css: [{ filename: 'phone.css', content: ON_A_PHONE }] },
      // The standalone layout has a bar that loads other documents, and a style element that the content policy refuses.
      uiConfig: { layout: 'BaseLayout' },
      staticCSP: CONTENT_POLICY,
    });
    refuseOtherMethods();
  });
}

/** Scripts and styles come from this server alone. The style sheet holds icons as data. */
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

/** Tables of the page become blocks, which wrap, so that nothing is wider than the screen. */
const ON_A_PHONE = `@media (max-width: 48rem) {
  .swagger-ui :is(table, thead, tbody, tr, th, td) { display: block; width: auto !important; min-width: 0 !important; max-width: none !important; }
  .swagger-ui thead { display: none; }
  .swagger-ui :is(td, th) { padding: 0.3rem 0 !important; }
  .swagger-ui .response-col_links { display: none; }
  .swagger-ui :is(pre, code, p, a, span) { white-space: pre-wrap !important; overflow-wrap: anywhere; }
  .swagger-ui :is(input, select, textarea) { max-width: 100%; min-width: 0 !important; }
  .swagger-ui .opblock-summary { flex-wrap: wrap; }
  .swagger-ui .opblock-summary-description { flex: 1 1 100%; }
  .swagger-ui .wrapper { padding: 0 0.5rem; }
  .swagger-ui .schemes-server-container > div, .swagger-ui :is(.servers, .servers > label) { width: 100%; min-width: 0; }
  .swagger-ui .servers > label { display: block; margin-right: 0; }
  .swagger-ui .servers select { width: 100%; }
}`;

const DESCRIPTION =
  'JSON over HTTP. Every call under /api carries `Authorization: Bearer <token>`. Errors are `application/problem+json` (RFC 9457) with a stable `code`. Lists give `next_cursor`: pass it back as `cursor` for the next page; null is the end.';

const TAGS = [
  { name: 'companies', description: 'Onboarding, authorization state, freshness.' },
  { name: 'runs', description: 'Syncs, their progress and their proofs.' },
  { name: 'changes', description: 'The change feed.' },
  { name: 'holds', description: 'Deletions that wait for a person.' },
  { name: 'issues', description: 'What a person should see, grouped by cause, and what to do about it.' },
  { name: 'schema', description: 'The columns of the typed views.' },
  { name: 'notifications', description: 'What the webhook is told, and what became of it.' },
  { name: 'audit', description: 'Who did what, and how it ended.' },
  { name: 'tokens', description: 'Tokens of people and programs, each with a name and a role.' },
  { name: 'operation', description: 'For probes and scrapers.' },
];

/** The transform lists every model a second time, as an input: removes the models to which no route refers. */
function withoutUnusedInputs<T extends object>(document: T): T {
  const { components, ...rest } = document as { components?: { schemas?: Record<string, unknown> } };
  const routes = JSON.stringify(rest);
  const used = Object.entries(components?.schemas ?? {}).filter(
    ([name]) => !name.endsWith('Input') || routes.includes(`"#/components/schemas/${name}"`),
  );
  return { ...rest, components: { ...components, schemas: Object.fromEntries(used) } } as T;
}

/** The description of a success whose model has none. */
const RIGHT: Readonly<Record<string, string>> = { 200: 'Done', 201: 'Made', 202: 'Asked for', 204: 'Gone' };

/**
 * Names every response, and adds the problems of every call. Responses may gain members, and problems have the members of their error: clients that are
 * generated from the document must not refuse them.
 */
function describeAnswers<T extends object>(document: T): T {
  const { paths, components } = document as DocumentedApi & { readonly components?: { schemas?: object } };
  declareProblems({ paths });
  for (const [name, schema] of Object.entries(components?.schemas ?? {})) if (!name.endsWith('Input')) allowMore(schema);
  for (const { responses } of Object.values(paths).flatMap((methods) => Object.values(methods))) {
    allowMore(responses);
    for (const [status, answer] of Object.entries(responses))
      if (answer.description === 'Default Response') answer.description = RIGHT[status] ?? answer.description;
  }
  return document;
}

/** A parameter without a value counts as absent (`queryOf`). */
function allowEmptyQueries<T extends object>(document: T): T {
  const { paths } = document as { paths: Record<string, Record<string, { parameters?: Record<string, unknown>[] }>> };
  for (const { parameters = [] } of Object.values(paths).flatMap((methods) => Object.values(methods)))
    for (const parameter of parameters) if (parameter.in === 'query') parameter.allowEmptyValue = true;
  return document;
}

/** The request and the response of one call of each operation. `RECORD_EXAMPLES=1` of test/process/api-examples.test.ts writes the file. */
const EXAMPLES = JSON.parse(readFileSync(new URL('./examples.json', import.meta.url), 'utf8')) as Readonly<
  Record<string, { readonly body?: object; readonly status: number; readonly response?: object }>
>;

function addExamples<T extends object>(document: T): T {
  for (const operation of Object.values((document as DocumentedApi).paths).flatMap((methods) => Object.values(methods))) {
    const { body, status, response } = EXAMPLES[operation.operationId ?? ''] ?? { status: 0 };
    const [asked, answered] = [operation.requestBody, operation.responses[status]].map(
      (part) => part?.content?.['application/json'],
    );
    if (asked && body) asked.example = body;
    if (answered && response) answered.example = response;
  }
  return document;
}

function allowMore(schema: unknown): void {
  if (typeof schema !== 'object' || schema === null) return;
  if ('additionalProperties' in schema && schema.additionalProperties === false) delete schema.additionalProperties;
  for (const part of Object.values(schema)) allowMore(part);
}
