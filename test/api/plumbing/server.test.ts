import { request as httpRequest } from 'node:http';
import { Registry } from 'prom-client';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { Authenticator } from '../../../src/api/plumbing/authenticator.js';
import { type AdminDependencies, createAdminServer } from '../../../src/api/server.js';
import { loadCatalogue } from '../../../src/catalogue/load-catalogue.js';
import { systemClock } from '../../../src/core/clock.js';
import { MusterError } from '../../../src/core/errors.js';
import { Secret } from '../../../src/core/secret.js';
import { createLogger } from '../../../src/observability/logger.js';
import { notQuiet } from '../../support/quiet.js';
import { testSuppressions } from '../../support/suppressions.js';
import { type AdminFixture, startAdmin, TOKEN } from '../admin-fixture.js';

let admin: AdminFixture;
beforeAll(async () => {
  admin = await startAdmin();
});
afterAll(() => admin.stop());

/** As written, without the tidying of paths that `fetch` does. */
function raw(
  path: string,
  options: { method?: string; headers?: Record<string, string> | string[] } = {},
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(admin.url);
    const sent = httpRequest({ hostname, port, path, ...options }, async (response) => {
      let text = '';
      for await (const chunk of response) text += chunk;
      resolve({ status: response.statusCode ?? 0, text });
    });
    sent.on('error', reject).end();
  });
}

describe('access', () => {
  test.each<[string, Record<string, string>]>([
    ['no token', {}],
    ['a wrong token', { authorization: 'Bearer wrong' }],
    ['an empty token', { authorization: 'Bearer ' }],
    ['a token in another letter case', { authorization: `Bearer ${TOKEN.toUpperCase()}` }],
    ['the beginning of the token', { authorization: `Bearer ${TOKEN.slice(0, -1)}` }],
    ['a token with a tail', { authorization: `Bearer ${TOKEN}x` }],
    ['another scheme', { authorization: `Basic ${Buffer.from(`admin:${TOKEN}`).toString('base64')}` }],
    ['no scheme', { authorization: TOKEN }],
    ['two tokens', { authorization: `Bearer ${TOKEN} ${TOKEN}` }],
    ['a token in another header', { 'x-api-key': TOKEN, cookie: `token=${TOKEN}` }],
  ])('%s gets 401 and nothing else', async (_what, headers) => {
    const response = await fetch(`${admin.url}/api/companies`, { headers });
    expect([response.status, response.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
    expect(response.headers.get('content-type')).toMatch('application/problem+json');
    expect(await response.json()).toEqual({
      type: 'urn:muster:error:unauthorized',
      title: 'Unauthorized',
      status: 401,
      detail: 'This call needs a bearer token.',
      code: 'unauthorized',
    });
  });

  test('takes neither of two tokens', async () => {
    const one = { authorization: `Bearer ${TOKEN}` };
    expect((await raw('/api/companies', { headers: one })).status).toBe(200);
    for (const [first, second] of [
      [TOKEN, 'wrong-token'],
      ['wrong-token', TOKEN],
      [TOKEN, TOKEN],
    ])
      expect(
        (
          await raw('/api/companies', {
            headers: ['Host', 'x', 'Authorization', `Bearer ${first}`, 'Authorization', `Bearer ${second}`],
          })
        ).status,
      ).toBe(401);
  });

  test('takes the scheme in any letter case', async () => {
    expect((await fetch(`${admin.url}/api/companies`, { headers: { authorization: `bearer ${TOKEN}` } })).status).toBe(200);
  });

  test('does not take the token from the address, nor writes it to the log', async () => {
    for (const name of ['token', 'access_token', 'authorization']) {
      expect((await fetch(`${admin.url}/api/companies?${name}=${TOKEN}-in-the-address`)).status).toBe(401);
    }
    expect(admin.log()).not.toContain(`${TOKEN}-in-the-address`);
  });

  test.each([
    '/api',
    '/api/',
    '/api/nothing',
    '/api/companies/',
    '/api/runs/../companies',
    '/api//companies',
    '/api/openapi.json/x',
    '/api/docs/../companies',
  ])('does not say without a token what is at %s', async (path) => {
    expect((await raw(path)).status).toBe(401);
  });

  test.each(['//api/companies', '/API/companies', '/%61pi/companies', '/healthz/../api/companies', '/api%2fcompanies'])(
    'is not got round by %s',
    async (path) => {
      const { status, text } = await raw(path);
      expect([401, 404]).toContain(status);
      expect(text).not.toContain('"data"');
    },
  );

  test('says 401 however often, and counts and logs attempts without their tokens', async () => {
    const statuses = new Set<number>();
    for (let i = 0; i < 700; i += 50) {
      const wave = Array.from({ length: 50 }, () =>
        fetch(`${admin.url}/api/companies`, { headers: { authorization: 'Bearer canary-of-a-guess' } }),
      );
      for (const response of await Promise.all(wave)) {
        statuses.add(response.status);
        await response.text();
      }
    }
    expect([...statuses]).toEqual([401]);
    expect(
      Number(/^muster_refused_tokens_total (\d+)$/m.exec(await (await fetch(`${admin.url}/metrics`)).text())?.[1]),
    ).toBeGreaterThan(699);
    expect(admin.log().match(/sent a wrong token/g)).toHaveLength(1);
    expect(admin.log()).toMatch(/"address":"127\.0\.0\.1"/);
    expect(admin.log()).not.toContain('canary-of-a-guess');
    const right = await Promise.all(Array.from({ length: 200 }, () => admin.call('GET', '/api/companies?limit=1')));
    expect(new Set(right.map(({ status }) => status))).toEqual(new Set([200]));
  });
});

describe('requests that are no requests', () => {
  test.each<[string, string, string, string | undefined, Record<string, string>, number]>([
    ['malformed JSON', 'POST', '/api/companies', '{"refresh_token": "canary-secret', {}, 400],
    ['a body of null', 'POST', '/api/companies', 'null', {}, 400],
    ['no body', 'POST', '/api/companies', undefined, {}, 400],
    ['a poisoned body', 'POST', '/api/companies', '{"__proto__": {"a": "canary-secret"}}', {}, 400],
    [
      'a form',
      'POST',
      '/api/companies',
      'refresh_token=canary-secret',
      { 'content-type': 'application/x-www-form-urlencoded' },
      415,
    ],
    ['plain text', 'POST', '/api/syncs', 'canary-secret', { 'content-type': 'text/plain' }, 415],
    ['a huge body', 'POST', '/api/companies', JSON.stringify({ refresh_token: 'canary-secret'.repeat(100_000) }), {}, 413],
    ['a malformed address', 'GET', '/api/companies/%zz', undefined, {}, 400],
    ['an unknown address', 'GET', '/api/nothing', undefined, {}, 404],
    ['an unknown address outside of the API', 'GET', '/nothing', undefined, {}, 404],
    ['an endless address', 'GET', `/api/companies/test/${'a'.repeat(5_000)}`, undefined, {}, 414],
    ['a wrong method', 'PUT', '/api/companies', '{}', {}, 405],
    ['another wrong method', 'DELETE', '/api/syncs', undefined, {}, 405],
    ['a wrong method at a probe', 'POST', '/healthz', undefined, {}, 405],
    ['a wrong method at the metrics', 'DELETE', '/metrics', undefined, {}, 405],
    ['a wrong method at the document', 'PUT', '/api/openapi.json', '{}', {}, 405],
  ])('answers %s with a problem', async (_what, method, path, body, headers, status) => {
    const answer = await admin.call(method, path, body, headers);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([status, 'application/problem+json; charset=utf-8']);
    expect(answer.json).toMatchObject({ status, code: status === 404 ? 'not_found' : 'invalid_request' });
    expect(answer.text + admin.log()).not.toContain('canary-secret');
    expect(answer.text).not.toMatch(/\bat .*\.(js|ts):|node_modules|FST_/);
  });

  test.each(['TRACE', 'QUERY'])('takes no %s', async (method) => {
    const { status, text } = await raw('/api/runs', { method, headers: { authorization: `Bearer ${TOKEN}` } });
    expect([status, JSON.parse(text).code]).toEqual([405, 'invalid_request']);
  });

  test('names the methods that an address takes', async () => {
    const answer = await admin.call('PATCH', '/api/runs');
    expect(answer.headers.get('allow')?.split(', ').toSorted()).toEqual(['GET', 'HEAD']);
  });
});

describe('addresses', () => {
  test.each(['/healthz/', '/api/docs/', '/api/openapi.json/', '/api/companies/', '/api/companies/?limit=1', '/api/changes/'])(
    'means the same with a slash at its end: %s',
    async (path) => {
      const bare = await admin.call('GET', path.replace(/\/(?=$|\?)/, ''));
      const answer = await admin.call('GET', path);
      expect([answer.status, answer.text]).toEqual([200, bare.text]);
    },
  );

  test('sends whoever opens the bare one to the page for signing in', async () => {
    const answer = await fetch(admin.url, { redirect: 'manual' });
    expect([answer.status, answer.headers.get('location')]).toEqual([302, '/login']);
  });
});

describe('failures', () => {
  test('shows nothing of an unexpected error and logs it', async () => {
    admin.refusal = new TypeError('the inside is showing') as never;
    const body = {
      environment: 'test',
      company_id: '5f0c1d3a-8a52-4c0e-9d1b-2f6f0f3b7a10',
      refresh_token: 'canary-refresh-token',
    };
    const answer = await admin.call('POST', '/api/companies', body);
    admin.refusal = undefined;
    expect([answer.status, answer.json.code]).toEqual([500, 'internal_error']);
    expect(answer.text).not.toContain('inside is showing');
    expect(admin.log()).toContain('the inside is showing');
    expect(admin.log()).not.toContain('canary-refresh-token');
  });

  test("shows an error's details, but not in the place of its code", async () => {
    admin.refusal = new MusterError('token_refused', 'Refused.', { details: { attempts: 2, code: 'mine', status: 200 } });
    const body = { environment: 'test', company_id: '5f0c1d3a-8a52-4c0e-9d1b-2f6f0f3b7a10', refresh_token: 'x' };
    const answer = await admin.call('POST', '/api/companies', body);
    admin.refusal = undefined;
    expect(answer.json).toMatchObject({ status: 422, code: 'token_refused', attempts: 2 });
  });

  test('says so when the database is away', async () => {
    const own = await startAdmin();
    const { db } = own;
    try {
      await db.pool.query('SELECT 1');
      // Every connection, and then the database itself, goes away under the server.
      const broken = new MusterError('database_unavailable', 'away');
      own.readiness.push({ name: 'queue', check: () => Promise.reject(broken) });
      const ready = await own.call('GET', '/readyz');
      expect([ready.status, ready.json]).toEqual([
        503,
        { ready: false, parts: { database: { ready: true }, queue: { ready: false, problem: 'away' } } },
      ]);
      await db.pool.query(`ALTER TABLE muster.holds RENAME TO elsewhere`);
      const answer = await own.call('GET', '/api/holds');
      expect([answer.status, answer.json.code]).toEqual([500, 'internal_error']);
      expect(answer.text).not.toContain('holds');
    } finally {
      await own.stop();
    }
  });
});

describe('open pages', () => {
  test('is alive, ready and measured without a token', async () => {
    expect(await (await fetch(`${admin.url}/healthz`)).json()).toEqual({ status: 'ok' });
    const ready = await fetch(`${admin.url}/readyz`);
    expect([ready.status, await ready.json()]).toEqual([200, { ready: true, parts: { database: { ready: true } } }]);
    const metrics = await fetch(`${admin.url}/metrics`);
    expect([metrics.status, metrics.headers.get('content-type')]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8']);
  });

  test('does not wait for a part that hangs in silence', async () => {
    admin.readiness.push({ name: 'silent', check: () => Promise.reject(new Error('secret inside')) });
    const answer = await fetch(`${admin.url}/readyz`);
    admin.readiness.pop();
    expect([answer.status, ((await answer.json()) as { parts: Record<string, unknown> }).parts.silent]).toEqual([
      503,
      { ready: false, problem: 'failed' },
    ]);
  });

  test('is ready without a part that it can answer without, and says that it is missing', async () => {
    admin.readiness.push({ name: 'workers', check: () => Promise.reject(new Error('none')), isOptional: true });
    const answer = await fetch(`${admin.url}/readyz`);
    admin.readiness.pop();
    expect([answer.status, await answer.json()]).toEqual([
      200,
      { ready: true, parts: { database: { ready: true }, workers: { ready: false, problem: 'failed' } } },
    ]);
  });

  test('describes itself as OpenAPI 3.1', async () => {
    const response = await fetch(`${admin.url}/api/openapi.json`);
    // oxlint-disable-next-line typescript/no-explicit-any
    const document: any = await response.json();
    expect([response.status, document.openapi]).toEqual([200, '3.1.0']);
    const operations = Object.entries<object>(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method} ${path}`),
    );
    expect(operations.toSorted()).toEqual(
      [
        'delete /api/companies/{environment}/{company_id}',
        'delete /api/quarantined-tokens/{id}',
        'delete /api/tokens/{id}',
        'get /.well-known/jwks.json',
        'get /api/audit',
        'get /api/certificates',
        'get /api/certificates/{id}',
        'get /api/runs/{id}/diff',
        'post /api/companies/{environment}/{company_id}/try',
        'post /api/companies/{environment}/{company_id}/verify',
        'get /api/barriers',
        'get /api/budget',
        'get /api/changes',
        'get /api/companies',
        'get /api/companies/{environment}/{company_id}',
        'get /api/companies/{environment}/{company_id}/history',
        'get /api/companies/{environment}/{company_id}/record',
        'get /api/companies/{environment}/{company_id}/records',
        'get /api/holds',
        'get /api/issues',
        'get /api/issues/{id}',
        'get /api/issues/{id}/companies',
        'get /api/last-night',
        'get /api/list-counts',
        'get /api/unproved',
        'post /api/issues/{id}/snooze',
        'post /api/issues/{id}/unsnooze',
        'get /api/nights',
        'get /api/notifications',
        'get /api/overview',
        'get /api/quarantined-tokens',
        'get /api/queue',
        'get /api/rejected',
        'get /api/resources',
        'get /api/runs',
        'get /api/runs/{id}',
        'get /api/runs/{id}/events',
        'get /api/schema',
        'get /api/tokens',
        'get /healthz',
        'get /metrics',
        'get /readyz',
        'post /api/companies',
        'post /api/companies/{environment}/{company_id}/connect-link',
        'post /api/companies/{environment}/{company_id}/forget',
        'post /api/companies/{environment}/{company_id}/forget/lift',
        'post /api/companies/{environment}/{company_id}/pause',
        'post /api/connect-links',
        'post /api/connect-links/reauthorization',
        'post /api/notifications/test',
        'post /api/companies/{environment}/{company_id}/quiet-hours',
        'post /api/companies/{environment}/{company_id}/rekey',
        'post /api/companies/{environment}/{company_id}/resume',
        'post /api/companies/{environment}/{company_id}/sync',
        'post /api/held-tokens/release',
        'post /api/holds/approve',
        'post /api/holds/{id}/approve',
        'post /api/notifications/redeliver',
        'post /api/notifications/{id}/redeliver',
        'post /api/holds/{id}/reject',
        'post /api/runs/{id}/cancel',
        'post /api/schema/rebuild',
        'post /api/installation/adopt',
        'post /api/installation/detach',
        'post /api/syncs',
        'get /api/syncs',
        'get /api/holds/{id}',
        'get /api/holds/{id}/rows',
        'post /api/tokens',
      ].toSorted(),
    );
    expect(document.security).toEqual([{ bearer: [] }]);
    expect(document.servers).toMatchObject([{ url: 'https://muster.example' }]);
    const ids = Object.values<Record<string, { operationId?: string }>>(document.paths).flatMap((methods) =>
      Object.values(methods).map(({ operationId }) => operationId),
    );
    expect(ids.filter((id) => !/^[a-z]+[A-Z]\w+$/.test(id ?? ''))).toEqual([]);
    expect(new Set(ids).size).toBe(ids.length);
    const { parameters } = document.paths['/api/changes'].get;
    expect(parameters.find(({ name }: { name: string }) => name === 'limit')).toMatchObject({
      required: false,
      schema: { type: 'integer', minimum: 1 },
      description: '1000 unless said; more than 10000 counts as 10000.',
    });
    expect(document.paths['/healthz'].get.security).toEqual([]);
    expect(Object.keys(document.components.schemas).toSorted()).toEqual([
      'ApprovedHolds',
      'AuditEntry',
      'Barrier',
      'Budget',
      'Certificate',
      'Change',
      'Company',
      'ConnectLink',
      'CreatedToken',
      'Diff',
      'FoundRecord',
      'Hold',
      'Installation',
      'Issue',
      'IssueCompany',
      'KeySet',
      'LastNight',
      'ListCounts',
      'ListHistory',
      'NamedToken',
      'Night',
      'Notification',
      'Overview',
      'Problem',
      'Progress',
      'QuarantinedToken',
      'Queue',
      'QueuedSyncs',
      'ReauthorizationLink',
      'Record',
      'RecordDiff',
      'RedeliveredNotifications',
      'RejectedRecord',
      'ReleasedTokens',
      'Resource',
      'RowOfHold',
      'Run',
      'SchemaColumn',
      'SyncPreview',
      'TriedList',
      'UnprovedList',
      'Verify',
      'Walk',
    ]);
    for (const [, name] of JSON.stringify(document).matchAll(/#\/components\/schemas\/(\w+)/g))
      expect(document.components.schemas).toHaveProperty(name!);
  });

  test('is readable with files from here alone, and a policy that lets nothing else in', async () => {
    const response = await fetch(`${admin.url}/api/docs`);
    const page = await response.text();
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(response.headers.get('content-security-policy')).toMatch(/default-src 'none'; script-src 'self'; style-src 'self';/);
    expect(response.headers.get('content-security-policy')).not.toMatch(/unsafe|https?:|\*/);
    expect(page).not.toMatch(/<style|<script>|style=|https?:\/\//);
    const files = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, file]) => new URL(file!, response.url));
    expect(files.length).toBeGreaterThan(4);
    for (const file of files) {
      const { status, headers } = await fetch(file);
      expect([file.origin, status, headers.get('x-content-type-options')]).toEqual([admin.url, 200, 'nosniff']);
    }
  });

  test('is readable behind a proxy that puts a path before it', async () => {
    const page = await (await fetch(`${admin.url}/api/docs`)).text();
    const files = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map(
      ([, file]) => new URL(file!, 'https://a.example/muster/api/docs'),
    );
    expect(files.filter(({ href }) => !href.startsWith('https://a.example/muster/api/docs/static/'))).toEqual([]);
  });

  test.each(['/api/docs/static/../../companies', '/api/docs/static/%2e%2e/package.json', '/api/docs/static/..%2fpackage.json'])(
    'opens no other file or address by %s',
    async (path) => {
      const { status, text } = await raw(path);
      expect([401, 403, 404]).toContain(status);
      expect(text).not.toMatch(/"data"|"version"/);
    },
  );
});

describe('start and stop', () => {
  const stops: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const stop of stops.splice(0)) await stop();
  });
  const another = (options: Partial<AdminDependencies>) => {
    const server = createAdminServer({
      host: '127.0.0.1',
      port: 0,
      quiet: notQuiet,
      publicUrl: new URL('http://127.0.0.1:0'),
      authenticator: new Authenticator({ db: admin.db, clock: systemClock, adminToken: new Secret(TOKEN) }),
      logger: createLogger({ level: 'silent' }),
      clock: systemClock,
      suppressions: testSuppressions,
      db: admin.db,
      schedule: { cron: '0 2 * * *', timezone: 'UTC', spreadMinutes: 120 },
      staleAfterHours: 26,
      catalogue: loadCatalogue(),
      providers: {},
      metrics: new Registry(),
      readiness: [],
      queueLook: { look: async () => [] },
      ...({} as Pick<
        AdminDependencies,
        'connections' | 'onboarding' | 'connectLinks' | 'authorization' | 'runs' | 'vault' | 'answers' | 'apiOf' | 'tokensOf'
      >),
      ...options,
    });
    stops.push(() => server.stop());
    return server;
  };

  test('says which port is taken', async () => {
    const error = await another({ port: Number(new URL(admin.url).port) })
      .start()
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'port_in_use', message: expect.stringMatching(/PORT/) });
  });

  test('stops twice, and before it was started', async () => {
    const server = another({});
    await Promise.all([server.stop(), server.stop()]);
    const started = another({});
    await Promise.all([started.start(), started.stop()]);
    await expect(fetch(`${started.url}/healthz`)).rejects.toThrow('fetch failed');
  });
});
