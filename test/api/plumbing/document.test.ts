import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ERROR_CODES, type ErrorCode } from '../../../src/core/errors.js';
import { type AdminFixture, startAdmin } from '../admin-fixture.js';

const PROJECT = fileURLToPath(new URL('../../..', import.meta.url));
/** configuration.md also names calls of the service, which have the same form. */
const DOCUMENTS = readdirSync(join(PROJECT, 'docs'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.md') && file !== 'configuration.md')
  .map((file) => join(PROJECT, 'docs', file));
let admin: AdminFixture;
beforeAll(async () => {
  admin = await startAdmin();
});
afterAll(() => admin.stop());

test('every call that a document names is one that the server describes', async () => {
  const { paths } = (await admin.call('GET', '/api/openapi.json')).json as { paths: Record<string, object> };
  const served = new Set(
    Object.entries(paths).flatMap(([path, methods]) => Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`)),
  );
  const named = DOCUMENTS.flatMap((file) =>
    [
      ...readFileSync(file, 'utf8').matchAll(
        /`((?:GET|POST|DELETE) \/(?:api|healthz|readyz|metrics|\.well-known)[\w/{}.-]*)[^`]*`/g,
      ),
    ].map(([, call]) => ({ file, call: call! })),
  );
  expect(named.length).toBeGreaterThan(60);
  const described = ['GET /api/openapi.json', 'GET /api/docs'];
  expect(named.filter(({ call }) => !served.has(call) && !described.includes(call))).toEqual([]);
});

interface Operation {
  readonly operationId?: string;
  readonly summary?: string;
  readonly tags?: readonly string[];
  readonly responses: Record<string, { description: string; content?: Record<string, unknown> }>;
}

test('the document says of every call what it is for, and of every problem which it is', async () => {
  const { paths, tags } = (await admin.call('GET', '/api/openapi.json')).json as {
    paths: Record<string, Record<string, Operation>>;
    tags: { name: string }[];
  };
  const groups = tags.map(({ name }) => name);
  for (const [path, methods] of Object.entries(paths))
    for (const [method, { operationId, summary, tags: own, responses }] of Object.entries(methods)) {
      const call = `${method} ${path}`;
      expect([call, operationId, summary]).toEqual([
        call,
        expect.stringMatching(/^\w+$/),
        expect.stringMatching(/^[A-Z].{5,}[^.]$/),
      ]);
      expect([call, own?.length, groups.includes(own?.[0] ?? '')]).toEqual([call, 1, true]);
      expect(Object.keys(responses)).not.toContain('default');
      expect(Object.keys(responses)).toEqual(expect.arrayContaining(['400', '500', '503']));
      for (const [status, { description, content }] of Object.entries(responses)) {
        expect([call, status, description]).not.toContain('Default Response');
        if (!content?.['application/problem+json']) continue;
        const codes = [...description.matchAll(/^- `(\w+)`: [A-Z].+\.$/gm)].map(([, code]) => code as ErrorCode);
        expect([call, status, codes.length]).toEqual([call, status, description.match(/- `/g)?.length]);
        for (const code of codes) {
          // Malformed requests have a status of their own each.
          const given = code === 'invalid_request' ? expect.any(Number) : ERROR_CODES[code]?.status;
          expect([call, code, Number(status)]).toEqual([call, code, given]);
        }
      }
    }
});
