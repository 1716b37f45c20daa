import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RunModel } from '../../src/api/runs/run-model.js';
import { type CollectedSpan, type Collector, startCollector } from '../support/collector.js';
import type { TestProcess } from '../support/process.js';
import { redisUrl } from '../support/redis.js';
import { Deployment } from './deployment.js';
import { waitFor } from './wait-for.js';

const SIZE = 50;
const RECORDS = 2_000;
/** The page after these is not answered while the first worker lives. A page begins with the last record of the page before. */
const COMMITTED = 10;
const NEXT = { path: '/employees', input: { skip: String(COMMITTED * (SIZE - 1)) } };
const HEADER = 'canary-of-a-header-5e0b';
const CATALOGUE = {
  employees: {
    method: 'GET',
    path: '/api/companies/{company_id}/employees',
    pager: { style: 'skip-take', in: 'query', skipName: 'skip', takeName: '$take', size: SIZE },
  },
  departments: {
    method: 'POST',
    path: '/api/v2.0/companies/{company_id}/departments/list',
    pager: { style: 'skip-take', in: 'body', size: SIZE },
  },
};
/** At the end of a process, the modules of OpenTelemetry that it has loaded. The metrics load its API, which does nothing by itself. */
const TELL_MODULES = `process.on('exit', () => console.error('loaded of OpenTelemetry: ' +
  Object.keys(require.cache).filter((path) => path.includes('@opentelemetry') && !path.includes('opentelemetry/api')).length + ' of ' + Object.keys(require.cache).length));`;
const backends = ['postgres', 'redis'] as const;

describe.each(backends.filter((backend) => backend === 'postgres' || redisUrl()))('with the queue on %s', (backend) => {
  let deployment: Deployment;
  let collector: Collector;
  let processes: TestProcess[];

  beforeAll(async () => {
    collector = await startCollector();
    deployment = await Deployment.open({
      redisUrl: backend === 'redis' ? redisUrl() : undefined,
      catalogue: CATALOGUE,
      sandbox: { companies: [{ name: 'Traced', employees: RECORDS, departments: 60 }], latencyMs: 20 },
    });
    Object.assign(deployment.env, {
      LOG_LEVEL: 'trace',
      NODE_OPTIONS: `--require ${join(deployment.home, 'tell-modules.cjs')}`,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_HEADERS: `authorization=${HEADER}`,
      OTEL_BSP_SCHEDULE_DELAY: '20',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment=test',
    });
    writeFileSync(join(deployment.home, 'tell-modules.cjs'), TELL_MODULES);
    processes = await Promise.all([deployment.startApi(), deployment.startWorker()]);
  });

  afterAll(async () => {
    await deployment.close();
    collector.close();
  });

  const companyId = () => deployment.sandbox.companies[0]!.companyId;
  const traceOf = ({ id }: RunModel) => collector.spans.filter(({ traceId }) => traceId === id.replaceAll('-', ''));
  const named = (spans: readonly CollectedSpan[], name: string) => spans.filter((span) => span.name === name);

  /** Waits until the span of the run has come, and so all of its trace. */
  async function wholeTraceOf(run: RunModel): Promise<CollectedSpan[]> {
    await waitFor(() => named(traceOf(run), 'run').length > 0);
    return traceOf(run);
  }

  function expectConnected(spans: readonly CollectedSpan[], run: RunModel): void {
    const ids = new Set(spans.map(({ spanId }) => spanId));
    expect(spans.filter(({ parentId }) => parentId !== '' && !ids.has(parentId))).toEqual([]);
    expect(named(spans, 'run')).toMatchObject([
      { parentId: '', attributes: { 'muster.run.id': run.id, 'muster.run.status': run.status } },
    ]);
  }

  /** The numbers of the pages in the span of each list, in order. */
  function pagesOf(spans: readonly CollectedSpan[]): Record<string, unknown[]> {
    const lists = named(spans, 'list').map(({ spanId, attributes }) => {
      const pages = named(spans, 'page').filter(({ parentId }) => parentId === spanId);
      const numbers = pages.map((page) => Number(page.attributes['muster.page.number'])).toSorted((a, b) => a - b);
      return [String(attributes['muster.list.resource']), numbers] as const;
    });
    expect(new Set(lists.map(([resource]) => resource)).size).toBe(lists.length);
    return Object.fromEntries(lists);
  }

  const allPages = (run: RunModel) =>
    Object.fromEntries(run.walks.map(({ resource, pages }) => [resource, Array.from({ length: pages }, (_, n) => n + 1)]));

  test('a run whose worker is killed is one connected trace with every page', async () => {
    deployment.sandbox.faults.add({ kind: 'hang', when: 'before' }, { ...NEXT, times: Infinity });
    await deployment.onboard(companyId());
    const half = await waitFor(async () => {
      const run = await deployment.lastRun(companyId());
      return run?.walks.some(({ pages }) => pages === COMMITTED) ? run : undefined;
    });
    // What was committed has come: kill -9 loses only what has not been sent yet.
    await waitFor(() => named(traceOf(half), 'page').length === COMMITTED);
    const [, worker] = processes;
    worker!.kill('SIGKILL');
    await worker!.exit;
    const early = new Set(traceOf(half).map(({ resource }) => resource['service.instance.id']));
    deployment.sandbox.faults.clear();
    processes[1] = await deployment.startWorker();
    const run = await deployment.runEnd(companyId());
    expect(run.status).toBe('succeeded');
    const spans = await wholeTraceOf(run);
    expectConnected(spans, run);
    expect(pagesOf(spans)).toEqual(allPages(run));
    expect(new Set(spans.map(({ resource }) => resource['service.instance.id'])).size).toBe(early.size + 1);
    expect(named(spans, 'list').map(({ attributes }) => attributes['muster.list.proof'])).toEqual(['join', 'join']);
    expect(named(spans, 'attempt').at(-1)!.attributes).toMatchObject({
      'muster.company.id': companyId(),
      'muster.attempt.deaths_before': 1,
    });
    expect(spans[0]!.resource).toMatchObject({ 'service.name': 'muster', 'deployment.environment': 'test' });
    const record = named(spans, 'page')[0]!.attributes;
    expect(record).toMatchObject({ 'http.response.status_code': 200, 'muster.page.kind': 'full', 'muster.page.records': SIZE });
  });

  test('a run that is put off and then cancelled is one connected trace, and log lines lead to it', async () => {
    deployment.sandbox.faults.add({ kind: 'status', status: 403 }, { path: '/employees', times: Infinity });
    await deployment.call('POST', `/api/companies/test/${companyId()}/sync`, { mode: 'full' });
    const waiting = await waitFor(async () => {
      const run = await deployment.lastRun(companyId());
      return run.retry_at ? run : undefined;
    });
    expect((await deployment.call('POST', `/api/runs/${waiting.id}/cancel`)).status).toBe(200);
    deployment.sandbox.faults.clear();
    const run = await deployment.runEnd(companyId());
    const spans = await wholeTraceOf(run);
    expect(run.status).toBe('cancelled');
    expectConnected(spans, run);
    expect(named(spans, 'attempt')).toMatchObject([{ status: { code: 2, message: 'walks_failed' } }]);
    expect(named(spans, 'page').filter(({ status }) => status.code === 2)).toMatchObject([
      { attributes: { 'error.type': 'service_refused', 'http.response.status_code': 403 } },
    ]);
    const lineOf = (text: string) =>
      processes[1]!.stderr.split('\n').find((line) => line.includes(text) && line.includes(run.id))!;
    const list = named(spans, 'list').find(({ attributes }) => attributes['muster.list.resource'] === 'employees')!;
    expect(JSON.parse(lineOf('walk of employees failed'))).toMatchObject({ trace_id: list.traceId, span_id: list.spanId });
    const [attempt] = named(spans, 'attempt');
    expect(JSON.parse(lineOf('run waits to retry'))).toMatchObject({ trace_id: attempt!.traceId, span_id: attempt!.spanId });
  });

  test('a verification is a trace, too', async () => {
    await deployment.call('POST', `/api/companies/test/${companyId()}/sync`);
    await deployment.runEnd(companyId());
    const { body } = await deployment.call('POST', `/api/companies/test/${companyId()}/verify`);
    const { id } = (body as { run: RunModel }).run;
    await waitFor(() => named(collector.spans, 'run').some(({ attributes }) => attributes['muster.run.id'] === id));
    const run = await deployment.lastRun(companyId());
    const spans = traceOf(run);
    expectConnected(spans, run);
    expect(named(spans, 'list')).toHaveLength(2);
    expect(named(spans, 'page').length).toBeGreaterThanOrEqual(RECORDS / SIZE);
  });

  test('nothing that was sent has a secret, an id of a record or a text of it', async () => {
    const records = deployment.sandbox.records(companyId(), 'employees').map((text) => JSON.parse(text) as object);
    const texts = records.flatMap((record) => Object.values(record).filter((value): value is string => String(value).length > 7));
    expect(texts.length).toBeGreaterThan(RECORDS);
    const secrets = [
      HEADER,
      deployment.sandbox.clientSecret.reveal(),
      deployment.adminToken,
      ...(await deployment.storedTokens()),
    ];
    const sent = Buffer.concat(collector.requests.map(({ body }) => body));
    const isSent = (text: string) => text !== companyId() && sent.includes(text);
    expect([...secrets, ...new Set(texts.map(String))].filter(isSent)).toEqual([]);
    expect(collector.requests.every(({ path, headers }) => path === '/v1/traces' && headers.authorization === HEADER)).toBe(true);
    for (const { stderr } of processes) expect(stderr.includes(HEADER)).toBe(false);
  });

  test('a collector that does not answer holds up no run and no stop', async () => {
    collector.behaviour = 'hang';
    await deployment.call('POST', `/api/companies/test/${companyId()}/sync`);
    expect((await deployment.runEnd(companyId())).status).toBe('succeeded');
    const [, worker] = processes;
    worker!.kill('SIGTERM');
    expect(await worker!.exit).toEqual({ code: 0, signal: null });
    expect(worker!.stderr).not.toContain('stopping took too long');
    expect(worker!.stderr).toMatch(/loaded of OpenTelemetry: [1-9]/);
  });

  test('without an endpoint nothing of OpenTelemetry is loaded', async () => {
    const before = collector.requests.length;
    const worker = await deployment.startWorker({ OTEL_EXPORTER_OTLP_ENDPOINT: '' });
    await deployment.call('POST', `/api/companies/test/${companyId()}/sync`);
    expect((await deployment.runEnd(companyId())).status).toBe('succeeded');
    worker.kill('SIGTERM');
    expect(await worker.exit).toEqual({ code: 0, signal: null });
    expect(worker.stderr).toMatch(/loaded of OpenTelemetry: 0 of [1-9]/);
    expect(worker.stderr).not.toContain('trace_id');
    expect(collector.requests).toHaveLength(before);
  });
});
