import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ERROR_CODES, type ErrorCode } from '../../../src/core/errors.js';
import { type AdminFixture, startAdmin } from '../admin-fixture.js';

const document = readFileSync(new URL('../../../docs/admin-api.md', import.meta.url), 'utf8');
let admin: AdminFixture;
beforeAll(async () => {
  admin = await startAdmin();
});
afterAll(() => admin.stop());

test('docs/admin-api.md names every call that the server describes, and no other', async () => {
  const { paths } = (await admin.call('GET', '/api/openapi.json')).json as { paths: Record<string, object> };
  const served = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  const named = new Set<string>();
  // "`POST /a/b` · `/c`" stands for POST /a/b and POST /a/c.
  for (const [, method, path, others] of document.matchAll(/`(GET|POST|DELETE) (\/[\w/{}.-]+)[^`]*`((?: · `\/\w+`)*)/g)) {
    named.add(`${method} ${path}`);
    for (const [, last] of others!.matchAll(/`(\/[\w-]+)`/g)) named.add(`${method} ${path!.replace(/\/\w+$/, last!)}`);
  }
  expect([...named].toSorted()).toEqual(served.toSorted());
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
