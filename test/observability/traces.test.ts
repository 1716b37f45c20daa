import { randomUUID } from 'node:crypto';
import { globalErrorHandler } from '@opentelemetry/core';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { MusterError } from '../../src/core/errors.js';
import { createLogger } from '../../src/observability/logger.js';
import { OtelTracer } from '../../src/observability/otel-tracer.js';
import { inPage, traceRun } from '../../src/observability/tracing.js';
import { type Collector, startCollector } from '../support/collector.js';

const RUN = '0192d3a4-5b6c-4d7e-8f90-a1b2c3d4e5f6';
const TRACE = RUN.replaceAll('-', '');
const LIST = {
  id: '11111111-2222-4333-8444-555555555555',
  startedAt: new Date(2_000),
  attributes: { 'muster.list.resource': 'employees' },
};
const run = { id: RUN, startedAt: new Date(1_000), attributes: { 'muster.run.id': RUN }, lists: [] };

let collector: Collector;
let lines: string[];
let now: number;
const logger = createLogger({ level: 'trace', destination: { write: (line) => void lines.push(line) } });

beforeEach(async () => {
  collector = await startCollector();
  lines = [];
  now = 0;
});
afterEach(() => collector.close());

/** Does the work as one process that then stops, so that everything was sent. */
async function inProcess(work: () => Promise<unknown>, headers?: string): Promise<void> {
  const clock = { ...systemClock, monotonic: () => now };
  const tracer = new OtelTracer({ url: new URL(`${collector.url}/v1/traces`), headers, clock, logger });
  await tracer.start();
  await work().catch(() => {});
  await tracer.stop();
}

const named = (name: string) => collector.spans.filter((span) => span.name === name);

test('processes that work on a run one after the other write one connected trace, with one span for the run and for each list', async () => {
  await inProcess(async () => {
    const trace = traceRun(run)!;
    const attempt = trace.startAttempt({ 'muster.attempt.number': 1 });
    trace.list(LIST).startPage().end({ 'muster.page.number': 1 });
    attempt.end();
  });
  expect(collector.spans.map(({ name }) => name).toSorted()).toEqual(['attempt', 'page']);
  await inProcess(async () => {
    const trace = traceRun({ ...run, lists: [LIST] })!;
    const attempt = trace.startAttempt({ 'muster.attempt.number': 2 });
    const list = trace.list(LIST);
    list.startPage().end({ 'muster.page.number': 2 });
    list.end();
    trace.end({ 'muster.run.status': 'succeeded' });
    attempt.end();
  });
  expect(collector.spans.map(({ name }) => name).toSorted()).toEqual(['attempt', 'attempt', 'list', 'page', 'page', 'run']);
  expect(new Set(collector.spans.map(({ traceId }) => traceId))).toEqual(new Set([TRACE]));
  const [root] = named('run');
  const [list] = named('list');
  expect(root).toMatchObject({
    parentId: '',
    start: 1_000_000_000n,
    attributes: { 'muster.run.id': RUN, 'muster.run.status': 'succeeded' },
  });
  expect(list).toMatchObject({
    parentId: root!.spanId,
    start: 2_000_000_000n,
    attributes: { 'muster.list.resource': 'employees' },
  });
  expect(named('attempt').map(({ parentId }) => parentId)).toEqual([root!.spanId, root!.spanId]);
  expect(named('page').map(({ parentId }) => parentId)).toEqual([list!.spanId, list!.spanId]);
});

test('a run that ends takes its lists along, those of earlier attempts, too', async () => {
  const other = { ...LIST, id: '66666666-2222-4333-8444-555555555555' };
  await inProcess(async () => {
    const trace = traceRun({ ...run, lists: [other] })!;
    trace.list(LIST).fail(new MusterError('service_refused', '', { details: { status: 403 } }));
    trace.end({ 'muster.run.status': 'failed' }, { code: 'walks_failed' });
  });
  const error = { code: 2, message: 'service_refused' };
  expect(named('list').map(({ status, attributes }) => [status, attributes['http.response.status_code']])).toEqual(
    expect.arrayContaining([
      [{ code: 0, message: '' }, undefined],
      [error, 403],
    ]),
  );
  expect(named('run')[0]).toMatchObject({ status: { code: 2, message: 'walks_failed' } });
  await inProcess(async () => traceRun({ ...run, lists: [LIST] })!.end({ 'muster.run.status': 'cancelled' }));
  expect(named('run')[1]!.attributes['muster.run.status']).toBe('cancelled');
  expect(named('list')).toHaveLength(3);
});

test('a page says how it was received, and a dropped one nothing', async () => {
  await inProcess(async () => {
    const list = traceRun(run)!.list(LIST);
    list.startPage();
    const page = list.startPage();
    page.retried();
    now += 7;
    page.received({ status: 200, bytes: Buffer.alloc(7) });
    now += 2.5;
    page.end({ 'muster.page.number': 3, 'muster.page.kind': undefined });
    list.startPage().fail(new MusterError('service_error', ''));
    await inPage(list, async () => ({ records: [1, 2, 3, 4, 5] }));
  });
  const [page, failed, whole] = named('page');
  expect(named('page')).toHaveLength(3);
  expect(page).toMatchObject({ events: ['received'] });
  expect(Number(page!.end - page!.start) / 1e6).toBeCloseTo(9.5, 2);
  expect(page!.attributes).toEqual({
    'http.response.status_code': 200,
    'http.request.resend_count': 1,
    'muster.page.bytes': 7,
    'muster.page.number': 3,
  });
  expect(failed).toMatchObject({ status: { code: 2, message: 'service_error' }, attributes: { 'error.type': 'service_error' } });
  expect(whole!.attributes).toEqual({ 'muster.page.records': 5 });
});

test('a span knows its ids from the beginning, as log lines carry them', async () => {
  await inProcess(async () => {
    const trace = traceRun(run)!;
    const attempt = trace.startAttempt({});
    const list = trace.list(LIST);
    logger.info({ of: 'attempt', ...attempt.ids });
    logger.info({ of: 'list', ...list.ids });
    list.end();
    trace.end({});
    attempt.end();
  });
  expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
    { of: 'attempt', trace_id: TRACE, span_id: named('attempt')[0]!.spanId },
    { of: 'list', trace_id: TRACE, span_id: named('list')[0]!.spanId },
  ]);
  expect(named('list')[0]!.spanId).toBe(LIST.id.replaceAll('-', '').slice(0, 16));
});

test('spans are sent while the work goes on: together after a moment, and at once where many wait', async () => {
  const tracer = new OtelTracer({ url: new URL(`${collector.url}/v1/traces`), clock: systemClock, logger });
  await tracer.start();
  const list = traceRun(run)!.list(LIST);
  list.startPage().end({});
  await expect.poll(() => named('page').length, { timeout: 10_000 }).toBe(1);
  for (let n = 0; n < 600; n += 1) list.startPage().end({});
  await expect.poll(() => named('page').length, { timeout: 10_000 }).toBe(601);
  await tracer.stop();
  expect(new Set(named('page').map(({ spanId }) => spanId)).size).toBe(601);
});

test('a sampler takes a run whole or not at all, and alike in each process', async () => {
  vi.stubEnv('OTEL_TRACES_SAMPLER', 'parentbased_traceidratio');
  vi.stubEnv('OTEL_TRACES_SAMPLER_ARG', '0.5');
  const runs = Array.from({ length: 40 }, () => ({ ...run, id: randomUUID(), lists: [{ ...LIST, id: randomUUID() }] }));
  for (let process = 0; process < 2; process += 1)
    await inProcess(async () => {
      for (const one of runs) {
        const trace = traceRun(one)!;
        trace.list(one.lists[0]!).startPage().end({});
        if (process === 1) trace.end({});
      }
    });
  vi.unstubAllEnvs();
  const counts = runs.map(({ id }) => collector.spans.filter(({ traceId }) => traceId === id.replaceAll('-', '')).length);
  // In the first process a page, in the second the same, the list and the run.
  expect(new Set(counts)).toEqual(new Set([0, 4]));
});

test('no word of an error is sent', async () => {
  const canary = 'canary-of-a-message-77ab';
  await inProcess(async () => {
    const error = new MusterError('service_refused', canary, { cause: new Error(canary), details: { status: canary } });
    const trace = traceRun(run)!;
    const list = trace.list(LIST);
    list.startPage().fail(error);
    list.fail(Object.assign(new Error(canary), { code: canary }));
    trace.end({}, error);
  });
  expect(collector.spans.map(({ name, status }) => [name, status.message])).toEqual(
    expect.arrayContaining([
      ['page', 'service_refused'],
      ['list', 'internal_error'],
      ['run', 'service_refused'],
    ]),
  );
  expect(Buffer.concat(collector.requests.map(({ body }) => body)).includes(canary)).toBe(false);
});

test('requests have the headers, and the resource says which program and version', async () => {
  await inProcess(async () => traceRun(run)!.end({}), 'authorization=Basic%20abc,x-scope=muster');
  expect(collector.requests[0]).toMatchObject({
    path: '/v1/traces',
    headers: { authorization: 'Basic abc', 'x-scope': 'muster' },
  });
  expect(collector.requests[0]!.headers['content-type']).toBe('application/x-protobuf');
  expect(named('run')[0]!.resource).toMatchObject({ 'service.name': 'muster', 'service.version': expect.any(String) });
});

test('a collector that refuses is mentioned once in ten minutes, with how many warnings were left out', async () => {
  collector.behaviour = 'refuse';
  await inProcess(async () => {
    for (const minute of [0, 1, 9, 11, 12]) {
      now = minute * 60_000;
      globalErrorHandler(new Error('refused'));
    }
    traceRun(run)!.end({});
  });
  const warnings = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(warnings.map(({ left_out: leftOut }) => leftOut)).toEqual([undefined, 2]);
  for (const warning of warnings) expect(warning).toMatchObject({ level: 40, msg: expect.stringMatching(/could not be sent/) });
  expect(collector.requests).toHaveLength(1);
});

test('a stop waits two seconds at most for a collector that does not answer', async () => {
  collector.behaviour = 'hang';
  const waits: number[] = [];
  const sleep = async (ms: number) => void waits.push(ms);
  const tracer = new OtelTracer({ url: new URL(collector.url), clock: { ...systemClock, sleep }, logger });
  await tracer.start();
  traceRun(run)!.end({});
  await tracer.stop();
  expect(waits).toEqual([2_000]);
  expect(lines).toMatchObject([expect.stringMatching(/the last spans could not be sent before the stop/)]);
});

test('without a tracer there are no spans', async () => {
  expect(traceRun(run)).toBeUndefined();
  expect(await inPage(undefined, async (span) => ({ records: [span] }))).toEqual({ records: [undefined] });
});
