import {
  type Attributes,
  type Context,
  context,
  createContextKey,
  DiagLogLevel,
  diag,
  ROOT_CONTEXT,
  type Span,
  SpanStatusCode,
  type Tracer as Spans,
  trace,
} from '@opentelemetry/api';
import { getNumberFromEnv, parseKeyPairsIntoRecord, setGlobalErrorHandler } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, type IdGenerator, NodeTracerProvider, RandomIdGenerator } from '@opentelemetry/sdk-trace-node';
import type { Clock } from '../core/clock.js';
import { ERROR_CODES, type MusterError } from '../core/errors.js';
import type { Service } from '../core/service.js';
import { VERSION } from '../core/version.js';
import type { Logger } from './logger.js';
import { type PageSpan, type SpanFacts, setTracer, type TracedRun, type TraceIds, type Tracer } from './tracing.js';

export interface OtelTracerOptions {
  /** Where spans are sent, as protobuf. */
  readonly url: URL;
  /** `name=value`, comma-separated, added to each request. */
  readonly headers?: string | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** How long ended spans wait to be sent together, unless OTEL_BSP_SCHEDULE_DELAY says otherwise: kill -9 loses these. */
const WAIT_MS = 1_000;
/** How long a stop waits for the collector. The process has 14 seconds for everything. */
const STOP_PATIENCE_MS = 2_000;
/** A collector that is away is mentioned this often. */
const WARN_EVERY_MS = 600_000;

const ROOT = createContextKey('the span of the run');

/** Sends traces to a collector by OpenTelemetry's SDK. Loaded only where an endpoint is set. */
export class OtelTracer implements Tracer, Service {
  readonly name = 'traces';
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #ids = new RunIds();
  readonly #provider: NodeTracerProvider;
  readonly #spans: Spans;
  readonly #warn: (members: object, text: string) => void;

  constructor({ url, headers, clock, logger }: OtelTracerOptions) {
    this.#clock = clock;
    this.#logger = logger;
    const exporter = new OTLPTraceExporter({ url: url.href, ...(headers && { headers: parseKeyPairsIntoRecord(headers) }) });
    // The SDK's default, five seconds, would lose more than a moment.
    const scheduledDelayMillis = getNumberFromEnv('OTEL_BSP_SCHEDULE_DELAY') ?? WAIT_MS;
    const processor = new BatchSpanProcessor(exporter, { scheduledDelayMillis });
    const own = resourceFromAttributes({
      'service.name': 'muster',
      'service.version': VERSION,
      'service.instance.id': `${process.pid}-${clock.now()}`,
    });
    const resource = own.merge(detectResources({ detectors: [envDetector] }));
    this.#provider = new NodeTracerProvider({ resource, spanProcessors: [processor], idGenerator: this.#ids });
    this.#spans = this.#provider.getTracer('muster', VERSION);
    this.#warn = seldom(clock, logger);
  }

  async start(): Promise<void> {
    const warn = seldom(this.#clock, this.#logger);
    const complain = (text: string) => warn({ opentelemetry: text }, 'OpenTelemetry warns of something about traces');
    const ignore = () => {};
    diag.setLogger(
      { error: complain, warn: complain, info: ignore, debug: ignore, verbose: ignore },
      { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
    );
    setGlobalErrorHandler((error) =>
      this.#warn({ err: error }, 'traces could not be sent: does a collector listen at OTEL_EXPORTER_OTLP_ENDPOINT?'),
    );
    // Without a propagator no `traceparent` is sent to anyone.
    this.#provider.register({ propagator: null });
    setTracer(this);
  }

  /** Sends the spans that have ended. A collector that does not answer keeps no process alive. */
  async stop(): Promise<void> {
    setTracer(undefined);
    const patience = new AbortController();
    const late = this.#clock.sleep(STOP_PATIENCE_MS, patience.signal).then(
      () => this.#warn({}, 'the last spans could not be sent before the stop'),
      () => {},
    );
    const sent = this.#provider
      .shutdown()
      .catch((error: unknown) => this.#warn({ err: error }, 'the last spans could not be sent'));
    await Promise.race([sent, late]);
    patience.abort();
    trace.disable();
    context.disable();
    diag.disable();
  }

  inRun<T>(run: TracedRun, attempt: SpanFacts, work: () => Promise<T>): Promise<T> {
    const root = this.#rootOf(run);
    const around = trace.setSpan(ROOT_CONTEXT, root).setValue(ROOT, root);
    return this.#within(around, 'attempt', { ...run.facts, ...attempt }, work);
  }

  inSpan<T>(name: string, facts: SpanFacts, work: () => Promise<T>): Promise<T> {
    return this.#within(context.active(), name, facts, work);
  }

  async #within<T>(around: Context, name: string, facts: SpanFacts, work: () => Promise<T>): Promise<T> {
    const span = this.#spans.startSpan(name, { attributes: attributesOf(facts) }, around);
    try {
      return await context.with(trace.setSpan(around, span), work);
    } finally {
      span.end();
    }
  }

  addToSpan(facts: SpanFacts): void {
    trace.getActiveSpan()?.setAttributes(attributesOf(facts));
  }

  failSpan(error: unknown): void {
    const span = trace.getActiveSpan();
    if (span) fail(span, error);
  }

  endRun(facts: SpanFacts, error?: unknown): void {
    const root = context.active().getValue(ROOT) as Span | undefined;
    if (!root) return;
    root.setAttributes(attributesOf(facts));
    if (error !== undefined) fail(root, error);
    root.end();
  }

  recordRun(run: TracedRun, facts: SpanFacts): void {
    this.#rootOf(run).setAttributes(attributesOf(facts)).end();
  }

  startPage(): PageSpan {
    return new OtelPageSpan(this.#spans.startSpan('page'));
  }

  ids(): TraceIds | undefined {
    const active = trace.getActiveSpan()?.spanContext();
    return active && { trace_id: active.traceId, span_id: active.spanId };
  }

  /**
   * The span `run`. Each attempt begins the same one, so that its spans have a parent and the sampler decides alike in all processes. Only the process
   * that ends the run ends it, and a span that has not ended is never sent.
   */
  #rootOf({ id, createdAt, facts }: TracedRun): Span {
    const options = { root: true, startTime: createdAt, attributes: attributesOf(facts) };
    return this.#ids.ofRun(id, () => this.#spans.startSpan('run', options, ROOT_CONTEXT));
  }
}

/** Random ids, apart from the span of a run: its ids are made of the run's, so that they outlive a process without being stored. */
class RunIds implements IdGenerator {
  readonly #random = new RandomIdGenerator();
  #run: string | undefined;

  generateTraceId(): string {
    return this.#run ?? this.#random.generateTraceId();
  }

  generateSpanId(): string {
    return this.#run?.slice(0, 16) ?? this.#random.generateSpanId();
  }

  /** Makes the span of this run. */
  ofRun(id: string, start: () => Span): Span {
    this.#run = id.replaceAll('-', '');
    const span = start();
    this.#run = undefined;
    return span;
  }
}

class OtelPageSpan implements PageSpan {
  readonly #span: Span;
  #retries = 0;

  constructor(span: Span) {
    this.#span = span;
  }

  retried(): void {
    this.#retries += 1;
  }

  received({ status, bytes }: { readonly status: number; readonly bytes: Uint8Array }): void {
    this.#span.setAttribute('http.response.status_code', status);
    this.#span.setAttribute('muster.page.bytes', bytes.length);
    this.#span.addEvent('received');
  }

  end(facts: SpanFacts): void {
    if (this.#retries > 0) this.#span.setAttribute('http.request.resend_count', this.#retries);
    this.#span.setAttributes(attributesOf(facts));
    this.#span.end();
  }

  fail(error: unknown): void {
    fail(this.#span, error);
    this.end({});
  }
}

/** A message may quote an address, and with it the id of a record, so only the code leaves the process. */
function fail(span: Span, error: unknown): void {
  const { code: given = '', details } = (error ?? {}) as Partial<MusterError>;
  const code = given in ERROR_CODES ? given : 'internal_error';
  const status = details?.['status'];
  span.setAttribute('error.type', code);
  if (typeof status === 'number') span.setAttribute('http.response.status_code', status);
  span.setStatus({ code: SpanStatusCode.ERROR, message: code });
}

/** Without the members that are undefined: the SDK would send them as empty. */
function attributesOf(facts: SpanFacts): Attributes {
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined)) as Attributes;
}

/** Warns at most every ten minutes, and says how many warnings were left out since. */
function seldom({ monotonic }: Clock, logger: Logger): (members: object, text: string) => void {
  let quietUntil = Number.NEGATIVE_INFINITY;
  let leftOut = 0;
  return (members, text) => {
    if (monotonic() < quietUntil) {
      leftOut += 1;
      return;
    }
    logger.warn({ ...members, ...(leftOut > 0 && { left_out: leftOut }) }, text);
    quietUntil = monotonic() + WARN_EVERY_MS;
    leftOut = 0;
  };
}
