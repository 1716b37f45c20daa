import type { FastifyInstance, FastifySchemaCompiler, HTTPMethods } from 'fastify';
import type { z } from 'zod';
import { MusterError } from '../../core/errors.js';
import { queryOf } from './models.js';
import { sendProblem } from './problem.js';

// These checks decide which requests the routes take: by content type, by method, and by the models of path, query and body.

/** Refuses every content type but JSON. An empty body with that type counts as no body. */
export function takeOnlyJson(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body === '') done(null, undefined);
    else void parse(request, body as string, done);
  });
}

/** Watches the routes of a scope. The returned function adds a 405 response for the methods that an address does not take. */
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
        method: api.supportedMethods.filter((method) => !methods.has(method)),
        url: url.slice(api.prefix.length),
        schema: { hide: true },
        config: { role: 'viewer' },
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

/** A route of this scope without a model of its query takes no parameter: `POST /api/syncs?environment=test` must not sync everything. */
export function refuseUnknownQueries(api: FastifyInstance): void {
  api.addHook('onRoute', (route) => {
    route.schema = { querystring: queryOf({}), ...route.schema };
  });
}

/** Checks a part of a request against its model. The model's own message is used, else one of `SENTENCES`; no message repeats a value. */
export const compileValidator: FastifySchemaCompiler<z.ZodType> =
  ({ schema, httpPart }) =>
  (value: unknown) => {
    // An absent body arrives as null.
    const { success, data, error } = schema.safeParse(value ?? undefined, {
      error: httpPart === 'querystring' ? sayOfQuery : sayOf,
    });
    if (success) return { value: data };
    const whole = httpPart === 'querystring' ? 'query' : 'body';
    const errors = error.issues.map(({ path, message }) => ({ path: path.join('.') || whole, message }));
    const faults = errors.map(({ path, message }) => `${path}: ${message}`).join('; ');
    return { error: new MusterError('invalid_request', `The request is not valid: ${faults}`, { details: { errors } }) };
  };

type Issue = z.core.$ZodRawIssue;

/** Fastify passes a parameter that occurs twice as a list of its values. */
function sayOfQuery(issue: Issue): string {
  if (issue.code === 'unrecognized_keys') return sayUnknown('parameters', issue.keys);
  return Array.isArray(issue.input) ? 'given twice' : sayOf(issue);
}

function sayOf(issue: Issue): string {
  if (issue.input === undefined) return 'is missing';
  const say = SENTENCES[issue.code] as ((issue: Issue) => string | undefined) | undefined;
  return say?.(issue) ?? 'is not valid';
}

const SENTENCES: { readonly [Code in Issue['code']]?: (issue: Extract<Issue, { code: Code }>) => string | undefined } = {
  invalid_type: ({ expected }) => TYPES[expected],
  invalid_value: ({ values }) => `must be ${ANY_OF.format(values.map(String))}`,
  too_small: ({ minimum }) => (minimum === 1 ? 'must not be empty' : 'is too small'),
  too_big: () => 'is too large',
  unrecognized_keys: ({ keys }) => sayUnknown('members', keys),
};

function sayUnknown(what: 'members' | 'parameters', keys: readonly string[]): string {
  const names = keys.filter((key) => /^\w{1,40}$/.test(key));
  return `has ${what} that this call does not know${names.length > 0 ? `: ${names.join(', ')}` : ''}`;
}

const ANY_OF = new Intl.ListFormat('en-GB', { type: 'disjunction' });

const TYPES: Readonly<Record<string, string>> = {
  string: 'must be a text',
  object: 'must be an object',
  array: 'must be a list',
  number: 'must be a number',
  int: 'must be a whole number',
  boolean: 'must be true or false',
};
