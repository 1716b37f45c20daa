import { readFileSync, writeFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Deployment } from './deployment.js';
import { waitFor } from './wait-for.js';

// Each operation is called once. RECORD_EXAMPLES=1 writes what was sent and answered into the file of examples, from which the OpenAPI document has
// them; otherwise the examples are compared with the document.

const FILE = new URL('../../src/api/plumbing/examples.json', import.meta.url);
const SECRET = 'a-secret-of-the-examples-3f1c';
const NAMES = ['synced', 'held', 'revoked', 'new'] as const;

interface Example {
  readonly body?: unknown;
  readonly status: number;
  readonly response?: unknown;
}

interface Part {
  readonly content?: Readonly<Record<string, { readonly example?: unknown }>>;
}

interface Document {
  readonly paths: Record<
    string,
    Record<string, { readonly operationId: string; readonly requestBody?: Part; readonly responses: Record<string, Part> }>
  >;
}

let deployment: Deployment;
const examples = new Map<string, Example>();
const idOf = (name: (typeof NAMES)[number]) => deployment.sandbox.companies[NAMES.indexOf(name)]!.companyId;
const pathOf = (name: (typeof NAMES)[number]) => `/api/companies/test/${idOf(name)}`;

beforeAll(async () => {
  deployment = await Deployment.open({
    sandbox: { companies: NAMES.map((name) => ({ name, employees: 640 })) },
    env: {
      NOTIFY_WEBHOOK_URL: 'http://127.0.0.1:9/',
      NOTIFY_WEBHOOK_SECRET: SECRET,
      SYNC_CRON: anHourAgo(),
      SYNC_TIMEZONE: 'UTC',
      SYNC_SPREAD_MINUTES: '0',
    },
  });
});
afterAll(() => deployment.close());

/** A daily schedule whose newest night began within the last two hours: all runs of this file belong to that night. */
function anHourAgo(): string {
  return `0 ${new Date(Date.now() - 3_600_000).getUTCHours()} * * *`;
}

/** Calls the operation, and keeps what was sent and answered. Throws unless it succeeds. */
async function call<T>(operation: string, method: string, path: string, body?: object): Promise<T> {
  const answered = await deployment.call(method, path, body);
  if (answered.status >= 300) throw new Error(`${operation} answered ${answered.status}: ${JSON.stringify(answered.body)}`);
  examples.set(operation, {
    ...(body && { body }),
    status: answered.status,
    ...(answered.body !== undefined && { response: answered.body }),
  });
  return answered.body as T;
}

/** Calls it until it gives an element of its list, which a sweep adds. */
function found<T extends object>(operation: string, path: string): Promise<T> {
  return waitFor(async () => (await call<{ data: T[] }>(operation, 'GET', path)).data[0]);
}

async function sync(name: (typeof NAMES)[number]) {
  await deployment.call('POST', `${pathOf(name)}/sync`, { mode: 'full' });
  return deployment.runEnd(idOf(name));
}

test('every operation can be called as its example says', async () => {
  const { sandbox, database } = deployment;
  await deployment.startApi();
  const worker = await deployment.startWorker();
  for (const name of ['synced', 'held', 'revoked'] as const) await deployment.onboard(idOf(name));
  for (const name of ['synced', 'held', 'revoked'] as const) await deployment.runEnd(idOf(name));
  // As if the companies had been onboarded the day before, and their first runs were those of the night.
  await database.db.pool.query("UPDATE muster.connections SET created_at = created_at - interval '1 day'");
  await database.db.pool.query("UPDATE muster.runs SET trigger = 'nightly'");
  sandbox.list(idOf('held'), 'employees').remove(0, 600);
  sandbox.list(idOf('held'), 'departments').remove(0, 36);
  await sync('held');
  sandbox.revoke(idOf('revoked'));
  await sync('revoked');

  await call('showHealth', 'GET', '/healthz');
  await call('showReadiness', 'GET', '/readyz');
  const refresh_token = sandbox.issueRefreshToken(idOf('new')).reveal();
  await call('onboardCompany', 'POST', '/api/companies', { environment: 'test', company_id: idOf('new'), refresh_token });
  await deployment.runEnd(idOf('new'));
  await call('listCompanies', 'GET', '/api/companies?limit=1');
  await call('showCompany', 'GET', pathOf('synced'));
  sandbox.list(idOf('synced'), 'employees').remove(5, 1);
  await call('syncCompany', 'POST', `${pathOf('synced')}/sync`, { resources: ['employees'], mode: 'full' });
  const { id } = await deployment.runEnd(idOf('synced'));
  await call('verifyCompany', 'POST', `${pathOf('synced')}/verify`, { resources: ['employees'] });
  await deployment.runEnd(idOf('synced'));
  await call('listRuns', 'GET', `/api/runs?company_id=${idOf('synced')}&limit=1`);
  await call('showRun', 'GET', `/api/runs/${id}`);
  await call('diffRuns', 'GET', `/api/runs/${id}/diff?resource=employees`);
  await call('showCompanyHistory', 'GET', `${pathOf('synced')}/history`);
  await waitFor(async () => {
    const { data } = await call<{ data: { runs: { finished: number } }[] }>('listNights', 'GET', '/api/nights');
    return data.some(({ runs }) => runs.finished === 3);
  });
  await database.db.pool.query(
    "UPDATE muster.lists SET last_verified_at = now() - interval '28 hours' WHERE company_id = $1 AND resource = 'employees'",
    [idOf('revoked')],
  );
  await call('showLastNight', 'GET', '/api/last-night');
  await call('listUnproved', 'GET', '/api/unproved?limit=1');
  await call('showOverview', 'GET', '/api/overview');
  await call('countLists', 'GET', '/api/list-counts');
  await found('listIssues', '/api/issues?status=ongoing&limit=1');
  // On a slow machine another issue may come first.
  const issue = await waitFor(async () => {
    const { body } = await deployment.call('GET', '/api/issues?status=ongoing');
    return (body as { data: { id: string; cause: string }[] }).data.find(({ cause }) => cause === 'reauthorization_required');
  });
  await call('showIssue', 'GET', `/api/issues/${issue.id}`);
  await call('listIssueCompanies', 'GET', `/api/issues/${issue.id}/companies?limit=1`);
  await call('snoozeIssue', 'POST', `/api/issues/${issue.id}/snooze`, {
    until: new Date(Date.now() + 3 * 86_400_000).toISOString(),
    reason: 'The customer answers on Monday.',
  });
  await call('unsnoozeIssue', 'POST', `/api/issues/${issue.id}/unsnooze`);
  await call('listChanges', 'GET', '/api/changes?resource=employees&limit=1');
  await call('listBarriers', 'GET', '/api/barriers?resource=employees&limit=1');
  const certificate = await found<{ id: string }>('listCertificates', '/api/certificates?limit=1');
  await call('showCertificate', 'GET', `/api/certificates/${certificate.id}`);
  await call('listSigningKeys', 'GET', '/.well-known/jwks.json');
  await found('listColumns', '/api/schema?resource=employees&limit=1');
  await call('listResources', 'GET', '/api/resources');
  await call('rebuildSchema', 'POST', '/api/schema/rebuild', { resource: 'employees' });
  await call('showBudget', 'GET', '/api/budget');
  await call('showQueue', 'GET', '/api/queue');
  await call('tryList', 'POST', `${pathOf('synced')}/try`, { resource: 'departments' });

  const { data: holds } = await call<{ data: { id: string }[] }>('listHolds', 'GET', '/api/holds?status=open');
  await call('showHold', 'GET', `/api/holds/${holds[0]!.id}`);
  await call('listHoldRows', 'GET', `/api/holds/${holds[0]!.id}/rows?limit=1`);
  await call('approveHold', 'POST', `/api/holds/${holds[0]!.id}/approve`, {
    reason: 'The service confirmed that these people left.',
  });
  await call('rejectHold', 'POST', `/api/holds/${holds[1]!.id}/reject`, { reason: 'The service lost half of the list.' });
  await call('approveGrantHolds', 'POST', '/api/holds/approve', {
    environment: 'test',
    cause: 'grant',
    reason: 'A new administrator.',
  });

  await call('pauseCompany', 'POST', `${pathOf('synced')}/pause`);
  await call('resumeCompany', 'POST', `${pathOf('synced')}/resume`);
  // Not now, whatever the hour: the answer would say until when.
  const quietHours = new Date().getUTCHours() < 12 ? '22:00-23:00' : '02:00-05:00';
  await call('setQuietHours', 'POST', `${pathOf('synced')}/quiet-hours`, { quiet_hours: quietHours });
  await deployment.call('POST', `${pathOf('synced')}/quiet-hours`, { quiet_hours: null });
  await call('createCompanyConnectLink', 'POST', `${pathOf('revoked')}/connect-link`);
  await call('createConnectLink', 'POST', '/api/connect-links', { environment: 'test' });
  await call('createReauthorizationLinks', 'POST', '/api/connect-links/reauthorization', { environment: 'test' });
  await call('releaseHeldTokens', 'POST', '/api/held-tokens/release', { environment: 'test' });
  const record = { resource: 'employees', id: await anId() };
  await call('findRecords', 'GET', `${pathOf('synced')}/records?resource=employees&limit=2`);
  await call('showRecord', 'GET', `${pathOf('synced')}/record?${new URLSearchParams(record)}`);
  await call('forgetRecord', 'POST', `${pathOf('synced')}/forget`, record);
  await call('liftMarks', 'POST', `${pathOf('synced')}/forget/lift`, record);
  await call('rekeyList', 'POST', `${pathOf('new')}/rekey`, { resource: 'departments' });

  await call('testNotifications', 'POST', '/api/notifications/test', { environment: 'test' });
  const { data: sent } = await call<{ data: { id: string }[] }>('listNotifications', 'GET', '/api/notifications?limit=1');
  await call('redeliverNotification', 'POST', `/api/notifications/${sent[0]!.id}/redeliver`);
  await call('redeliverNotifications', 'POST', '/api/notifications/redeliver', { environment: 'test' });
  const token = await call<{ id: string }>('createToken', 'POST', '/api/tokens', {
    name: 'dashboard of the warehouse',
    role: 'viewer',
  });
  await call('listTokens', 'GET', '/api/tokens');
  await call('deleteToken', 'DELETE', `/api/tokens/${token.id}`);

  await database.db.pool.query(`
    INSERT INTO muster.quarantined_tokens (environment, company_id, refresh_token, link_id)
    VALUES ('test', gen_random_uuid(), 'sealed', gen_random_uuid())`);
  await database.db.pool.query(
    `
    WITH walk AS (
      UPDATE muster.walks SET rejected = 1 WHERE id = (SELECT id FROM muster.walks WHERE resource = 'departments' AND company_id = $1 ORDER BY finished_at DESC LIMIT 1)
      RETURNING id, pass)
    INSERT INTO muster.rejected_records (walk_id, pass, page, position, reason, text)
    SELECT id, pass, 1, 3, 'no_id', encode('{"name": "Field service"}', 'base64') FROM walk`,
    [idOf('synced')],
  );
  await call('listRejectedRecords', 'GET', '/api/rejected?limit=1');
  const {
    data: [kept],
  } = await call<{ data: { id: string }[] }>('listQuarantinedTokens', 'GET', '/api/quarantined-tokens');
  await call('deleteQuarantinedToken', 'DELETE', `/api/quarantined-tokens/${kept!.id}`);

  worker.kill('SIGTERM');
  await worker.exit;
  const { run } = (await deployment.call('POST', `${pathOf('synced')}/sync`)).body as { run: { id: string } };
  await call('cancelRun', 'POST', `/api/runs/${run.id}/cancel`);
  await call('previewSyncs', 'GET', '/api/syncs?environment=test');
  await call('syncCompanies', 'POST', '/api/syncs', {
    companies: [{ environment: 'test', company_id: idOf('synced') }],
    resources: ['employees'],
  });
  await call('removeCompany', 'DELETE', pathOf('new'));
  await call('listAudit', 'GET', '/api/audit?limit=1');
  await call('adoptInstallation', 'POST', '/api/installation/adopt', { feed: 'same' });
  await call('detachInstallation', 'POST', '/api/installation/detach');
  if (process.env['RECORD_EXAMPLES']) writeExamples(examples);

  expect(shapes(written())).toEqual(shapes(examples));
});

test('every body and answer in JSON of the document has an example that fits its model', async () => {
  const document = (await (await fetch(`${deployment.url}/api/openapi.json`)).json()) as Document;
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  formats.default(ajv);
  ajv.addSchema({ ...document, $id: 'openapi' });
  const faults: string[] = [];
  for (const [path, methods] of Object.entries(document.paths))
    for (const [method, { operationId, requestBody, responses }] of Object.entries(methods)) {
      const right = Object.entries(responses).filter(([status]) => status.startsWith('2'));
      const parts = {
        body: [['requestBody', requestBody]],
        answer: right.map(([status, part]) => [`responses/${status}`, part]),
      };
      for (const [what, described] of Object.entries(parts) as [string, [string, Part | undefined][]][]) {
        const withJson = described.filter(([, part]) => part?.content?.['application/json']);
        const shown = withJson.filter(([, part]) => 'example' in part!.content!['application/json']!);
        if (withJson.length > 0 && shown.length === 0) faults.push(`${operationId} has no example of its ${what}`);
        for (const [place, part] of shown) {
          const pointer = `openapi#/paths/${path.replaceAll('/', '~1')}/${method}/${place}/content/application~1json/schema`;
          const validate = ajv.getSchema(pointer)!;
          if (!validate(part!.content!['application/json']!.example))
            faults.push(`${operationId}: ${ajv.errorsText(validate.errors)}`);
        }
      }
    }
  expect(faults).toEqual([]);
});

async function anId(): Promise<string> {
  const { rows } = await deployment.database.db.pool.query<{ id: string }>(
    'SELECT id FROM mirror.employees WHERE company_id = $1 AND deleted_at IS NULL LIMIT 1',
    [idOf('synced')],
  );
  return rows[0]!.id;
}

function written(): Map<string, Example> {
  return new Map(Object.entries(JSON.parse(readFileSync(FILE, 'utf8')) as Record<string, Example>));
}

/** What stays the same from one recording to the next: the operations, their statuses, and the members at the top. */
function shapes(of: ReadonlyMap<string, Example>) {
  const members = (value: unknown) => (value && typeof value === 'object' ? Object.keys(value).toSorted() : []);
  const entries = [...of].map(
    ([name, { body, status, response }]) => [name, [status, members(body), members(response)]] as const,
  );
  return Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** Writes the examples, an operation a line, without secrets and with lists cut to what shows their shape. */
function writeExamples(of: ReadonlyMap<string, Example>): void {
  const secrets = new RegExp(`eyJ[\\w.-]{20,}|${SECRET}`, 'g');
  const shown = (key: string, value: unknown): unknown => {
    if (Array.isArray(value)) return value.slice(0, value.every((each) => typeof each === 'string') ? 3 : 1);
    if (typeof value !== 'string') return value;
    if (key === 'refresh_token') return 'the-refresh-token-of-the-company';
    if (key === 'token') return 'shown-once-and-never-again';
    if (key === 'jws') return 'eyJhbGciOiJFZERTQSJ9.facts.signature';
    return value
      .replace(/\/connect\/[\w-]+$/, '/connect/a-link-for-one-company')
      .replaceAll(deployment.url, 'https://muster.example.com')
      .replaceAll(secrets, 'signed-and-secret');
  };
  const lines = [...of]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, example]) => `  "${name}": ${JSON.stringify(example, shown)}`);
  writeFileSync(FILE, `{\n${lines.join(',\n')}\n}\n`);
}
