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
import {
  type PageSpan,
  type SpanFacts,
  setTracer,
  type TracedRun,
  type TracedWork,
  type TraceIds,
  type Tracer,
} from './tracing.js';

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

const RUN = createContextKey('the open run');

/** Sends traces to a collector by OpenTelemetry's SDK. Loaded only where an endpoint is set. */
export class OtelTracer implements Tracer, Service {
  readonly name = 'traces';
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #ids = new SpanIds();
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

  async inRun<T>(run: TracedRun, attempt: SpanFacts, work: () => Promise<T>): Promise<T> {
    const open = this.#open(run);
    const span = this.#spans.startSpan('attempt', { attributes: attributesOf({ ...run.facts, ...attempt }) }, open.context);
    try {
      return await context.with(trace.setSpan(open.context, span), work);
    } finally {
      span.end();
    }
  }

  async inList<T>(list: TracedWork, work: () => Promise<T>, isOver: (result: T) => boolean): Promise<T> {
    const { context: around, lists } = context.active().getValue(RUN) as OpenRun;
    const span = lists.get(list.id) ?? this.#start('list', list, around);
    lists.set(list.id, span);
    const result = await context.with(trace.setSpan(around, span), work);
    if (isOver(result)) {
      span.end();
      lists.delete(list.id);
    }
    return result;
  }

  addToSpan(facts: SpanFacts): void {
    trace.getActiveSpan()?.setAttributes(attributesOf(facts));
  }

  failSpan(error: unknown): void {
    const span = trace.getActiveSpan();
    if (span) fail(span, error);
  }

  endRun(facts: SpanFacts, error?: unknown): void {
    const open = context.active().getValue(RUN) as OpenRun | undefined;
    if (open) end(open, facts, error);
  }

  recordRun(run: TracedRun, facts: SpanFacts): void {
    end(this.#open(run), facts);
  }

  startPage(): PageSpan {
    return new OtelPageSpan(this.#spans.startSpan('page'));
  }

  ids(): TraceIds | undefined {
    const active = trace.getActiveSpan()?.spanContext();
    return active && { trace_id: active.traceId, span_id: active.spanId };
  }

  #open(run: TracedRun): OpenRun {
    const span = this.#start('run', run, ROOT_CONTEXT);
    const lists = new Map<string, Span>();
    const open: OpenRun = { span, lists, context: trace.setSpan(ROOT_CONTEXT, span) };
    open.context = open.context.setValue(RUN, open);
    for (const list of run.lists) lists.set(list.id, this.#start('list', list, open.context));
    return open;
  }

  /**
   * The span of a run or list. Each attempt begins the same one again, so that the spans below have a parent and the sampler decides alike in all
   * processes. A span that is not ended is never sent.
   */
  #start(name: string, { id, startedAt, facts }: TracedWork, around: Context): Span {
    return this.#ids.madeOf(id, () =>
      this.#spans.startSpan(name, { startTime: startedAt, attributes: attributesOf(facts) }, around),
    );
  }
}

/** A run whose attempt is under way, with its lists that have not ended. */
interface OpenRun {
  readonly span: Span;
  readonly lists: Map<string, Span>;
  /** The run's span is active in it. */
  context: Context;
}

function end({ span, lists }: OpenRun, facts: SpanFacts, error?: unknown): void {
  for (const list of lists.values()) list.end();
  span.setAttributes(attributesOf(facts));
  if (error !== undefined) fail(span, error);
  span.end();
}

/** Random ids, apart from those of runs and lists, which outlive a process and are stored nowhere: they are made of the UUID of the run or list. */
class SpanIds implements IdGenerator {
  readonly #random = new RandomIdGenerator();
  #uuid: string | undefined;

  generateTraceId(): string {
    return this.#uuid ?? this.#random.generateTraceId();
  }

  generateSpanId(): string {
    return this.#uuid?.slice(0, 16) ?? this.#random.generateSpanId();
  }

  /** The ids of the span that `start` begins are made of the UUID. */
  madeOf(uuid: string, start: () => Span): Span {
    this.#uuid = uuid.replaceAll('-', '');
    const span = start();
    this.#uuid = undefined;
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
