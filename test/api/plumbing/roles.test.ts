import { randomUUID } from 'node:crypto';
import Fastify from 'fastify';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { requireRoles } from '../../../src/api/plumbing/access.js';
import { ROLES, type Role } from '../../../src/db/tables/named-tokens.js';
import { type AdminFixture, startAdmin } from '../admin-fixture.js';

let admin: AdminFixture;
const tokens = new Map<Role, string>();
beforeAll(async () => {
  admin = await startAdmin();
  for (const role of ROLES) tokens.set(role, (await admin.call('POST', '/api/tokens', { name: `a ${role}`, role })).json.token);
});
afterAll(() => admin.stop());

interface Described {
  readonly security?: { bearer: Role[] }[];
  readonly description: string;
  readonly responses: object;
}

interface Operation {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  /** As the document says. */
  readonly role: Role;
  readonly description: string;
  readonly statuses: string[];
}

async function operations(): Promise<Operation[]> {
  const { paths } = (await admin.call('GET', '/api/openapi.json')).json as { paths: Record<string, Record<string, Described>> };
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(() => path.startsWith('/api/'))
      .map(([verb, { security, description, responses }]) => {
        const method = verb.toUpperCase();
        const statuses = Object.keys(responses);
        return { name: `${method} ${path}`, method, path, role: security![0]!.bearer[0]!, description, statuses };
      }),
  );
}

/** An address that names nothing that is there. */
const addressOf = ({ path }: Operation) => path.replace('{environment}', 'test').replaceAll(/\{\w+\}/g, () => randomUUID());

const callAs = (role: Role, method: string, path: string) =>
  admin.call(method, path, undefined, { authorization: `Bearer ${tokens.get(role)}` });

test('every operation of the document is refused to the roles below the one that it names, and to no other', async () => {
  const all = await operations();
  expect(all.length).toBeGreaterThan(20);
  for (const operation of all) {
    for (const role of ROLES) {
      const { status, json, headers } = await callAs(role, operation.method, addressOf(operation));
      const where = `${operation.name} as ${role}`;
      if (ROLES.indexOf(role) >= ROLES.indexOf(operation.role)) expect([401, 403], where).not.toContain(status);
      else {
        expect([status, json.code, json.required_role], where).toEqual([403, 'forbidden', operation.role]);
        expect(json.detail).toBe(`This call needs the role ${operation.role}; your token has the role ${role}.`);
        expect(headers.get('content-type')).toMatch(/^application\/problem\+json/);
      }
    }
  }
  expect(await admin.db.prisma.auditEntry.count({ where: { role: 'viewer' } })).toBe(0);
});

test('viewers read, operators act on companies, and the rest is for admins', async () => {
  const all = await operations();
  for (const { name, method, path, role, description, statuses } of all) {
    if (method === 'GET') expect(role, name).toBe(/\/records?$/.test(path) ? 'operator' : 'viewer');
    expect(description, name).toContain(`Needs the role ${role}.`);
    expect(statuses.includes('403'), name).toBe(role !== 'viewer');
  }
  expect(Object.fromEntries(all.map(({ name, role }) => [name, role]))).toMatchObject({
    'POST /api/companies': 'admin',
    'DELETE /api/companies/{environment}/{company_id}': 'admin',
    'POST /api/companies/{environment}/{company_id}/rekey': 'admin',
    'POST /api/companies/{environment}/{company_id}/forget': 'admin',
    'POST /api/companies/{environment}/{company_id}/forget/lift': 'admin',
    'DELETE /api/quarantined-tokens/{id}': 'admin',
    'POST /api/tokens': 'admin',
    'DELETE /api/tokens/{id}': 'admin',
    'POST /api/companies/{environment}/{company_id}/sync': 'operator',
    'POST /api/companies/{environment}/{company_id}/pause': 'operator',
    'POST /api/companies/{environment}/{company_id}/resume': 'operator',
    'POST /api/companies/{environment}/{company_id}/quiet-hours': 'operator',
    'POST /api/companies/{environment}/{company_id}/connect-link': 'operator',
    'POST /api/connect-links': 'operator',
    'POST /api/syncs': 'operator',
    'POST /api/runs/{id}/cancel': 'operator',
    'POST /api/holds/{id}/approve': 'operator',
    'POST /api/holds/{id}/reject': 'operator',
    'POST /api/notifications/redeliver': 'operator',
    'POST /api/notifications/{id}/redeliver': 'operator',
  });
});

test('a viewer who has too little right leaves nothing behind, whatever the body', async () => {
  const company = await admin.addCompany();
  const viewer = { authorization: `Bearer ${tokens.get('viewer')}` };
  expect((await admin.call('DELETE', `/api/companies/test/${company.companyId}`, undefined, viewer)).status).toBe(403);
  expect((await admin.call('POST', '/api/tokens', { name: 'mine', role: 'admin' }, viewer)).status).toBe(403);
  expect((await admin.call('POST', '/api/tokens', 'no JSON', viewer)).status).toBe(403);
  expect((await admin.call('GET', `/api/companies/test/${company.companyId}`, undefined, viewer)).status).toBe(200);
  expect(JSON.stringify((await admin.call('GET', '/api/tokens')).json)).not.toContain('mine');
});

test('whoever bears a token is told of unknown addresses, other methods and heads', async () => {
  expect((await callAs('viewer', 'GET', '/api/nothing')).status).toBe(404);
  expect((await callAs('viewer', 'DELETE', '/api/runs')).status).toBe(405);
  expect((await callAs('viewer', 'HEAD', '/api/companies')).status).toBe(200);
});

test.each([{}, { config: {} }])('a route that declares no role cannot be registered: %j', (options) => {
  const app = Fastify();
  app.decorateRequest('caller');
  requireRoles(app);
  expect(() => app.post('/forgotten', options, () => undefined)).toThrow(/POST \/forgotten declares no role/);
});
