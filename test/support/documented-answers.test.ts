import { expect, test } from 'vitest';
import { DocumentedAnswers } from './documented-answers.js';

const PROBLEM = 'application/problem+json';
const problem = { [PROBLEM]: { schema: { $ref: '#/components/schemas/Problem' } } };
const thing = { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] };
const documented = new DocumentedAnswers({
  paths: {
    '/api/things/{id}': {
      get: {
        responses: {
          200: { description: 'Done', content: { 'application/json': { schema: thing }, 'text/csv': {} } },
          404: { description: '- `thing_not_found`: There is none.', content: problem },
        },
      },
      delete: { responses: { 204: { description: 'Gone' } } },
    },
  },
  components: {
    schemas: {
      Problem: { type: 'object', properties: { title: {}, code: { type: 'string' }, status: {} }, required: ['code', 'status'] },
    },
  },
});

function check(method: string, path: string, status: number, type: string, body?: unknown): void {
  documented.check(method, path, { status, type, text: body === undefined ? '' : JSON.stringify(body) });
}

test.each<[string, Parameters<typeof check>]>([
  ['an answer', ['GET', '/api/things/1?x=y', 200, 'application/json; charset=utf-8', { id: 'a' }]],
  ['an answer of another type', ['GET', '/api/things/1', 200, 'text/csv', 'a,b']],
  ['an answer without a body', ['DELETE', '/api/things/1/', 204, '']],
  ['the headers alone', ['HEAD', '/api/things/1', 200, 'application/json']],
  ['a problem with further members', ['GET', '/api/things/1', 404, PROBLEM, { status: 404, code: 'thing_not_found', more: 1 }]],
  ['a problem of an address that is none', ['GET', '/api/nothing', 404, PROBLEM, { status: 404, code: 'not_found' }]],
  ['a page', ['GET', '/connect/x', 200, 'text/html', '<p>']],
  ['the document', ['GET', '/api/openapi.json', 200, 'application/json', {}]],
])('%s passes', (_what, call) => {
  expect(() => check(...call)).not.toThrow();
});

test.each<[string, Parameters<typeof check>, RegExp]>([
  ['a status', ['GET', '/api/things/1', 202, 'application/json', { id: 'a' }], /knows no 202/],
  ['a content type', ['GET', '/api/things/1', 200, 'text/html', '<p>'], /knows no 200 text\/html/],
  ['a body where there is none', ['DELETE', '/api/things/1', 204, 'application/json', {}], /knows no 204/],
  ['no body where there is one', ['GET', '/api/things/1', 200, ''], /knows no 200 without a body/],
  ['a missing member', ['GET', '/api/things/1', 200, 'application/json', {}], /required property 'id'/],
  ['a member of another type', ['GET', '/api/things/1', 200, 'application/json', { id: 1 }], /must be string/],
  ['a member more', ['GET', '/api/things/1', 200, 'application/json', { id: 'a', b: 1 }], /additional properties/],
  ['a code', ['GET', '/api/things/1', 404, PROBLEM, { status: 404, code: 'not_found' }], /names no not_found/],
  ['another status in the problem', ['GET', '/api/things/1', 404, PROBLEM, { status: 400, code: 'thing_not_found' }], /says 400/],
  ['a problem without its code', ['GET', '/api/nothing', 404, PROBLEM, { status: 404 }], /required property 'code'/],
  ['a failure of an address that is none', ['GET', '/api/nothing', 500, PROBLEM, { status: 500, code: 'x' }], /knows no 500/],
  ['a call', ['GET', '/api/nothing', 200, 'application/json', {}], /knows no 200/],
])('%s that the document does not know is refused', (_what, call, message) => {
  expect(() => check(...call)).toThrow(message);
});
