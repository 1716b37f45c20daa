import type { FastifySchemaCompiler } from 'fastify';
import type { z } from 'zod';
import { MusterError } from '../core/errors.js';

/** Checks a part of a request against its model. A model's own sentence stands; else one of these, and none repeats a value. */
export const compileValidator: FastifySchemaCompiler<z.ZodType> =
  ({ schema, httpPart }) =>
  (value: unknown) => {
    // No body at all arrives as null.
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

/** A parameter that is there twice arrives as a list. */
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
