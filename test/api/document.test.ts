import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AdminFixture, startAdmin } from './admin-fixture.js';

const document = readFileSync(new URL('../../docs/admin-api.md', import.meta.url), 'utf8');
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
  for (const [, method, path, others] of document.matchAll(/`(GET|POST|DELETE) (\/[\w/{}-]+)[^`]*`((?: · `\/\w+`)*)/g)) {
    named.add(`${method} ${path}`);
    for (const [, last] of others!.matchAll(/`(\/[\w-]+)`/g)) named.add(`${method} ${path!.replace(/\/\w+$/, last!)}`);
  }
  expect([...named].toSorted()).toEqual(served.toSorted());
});
