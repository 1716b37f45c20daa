import { DiagLogLevel, diag } from '@opentelemetry/api';
import { getNumberFromEnv, parseKeyPairsIntoRecord, setGlobalErrorHandler } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { Clock } from '../core/clock.js';
import { PeriodicTask } from '../core/periodic-task.js';
import type { Service } from '../core/service.js';
import { VERSION } from '../core/version.js';
import type { Logger } from './logger.js';
import { GivenIds, SpanNotes } from './noted-span.js';
import { OtelRunTrace } from './otel-run-trace.js';
import { type RunTrace, setTracer, type TracedRun, type Tracer } from './tracing.js';

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
const SHORTEST_WAIT_MS = 10;
/** How long a stop waits for the collector. The process has 14 seconds for everything. */
const STOP_PATIENCE_MS = 2_000;
/** A collector that is away is mentioned this often. */
const WARN_EVERY_MS = 600_000;

/** Sends traces to a collector by OpenTelemetry's SDK. Loaded only where an endpoint is set. */
export class OtelTracer implements Tracer, Service {
  readonly name = 'traces';
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #ids = new GivenIds();
  readonly #provider: BasicTracerProvider;
  readonly #notes: SpanNotes;
  readonly #sending: PeriodicTask;
  readonly #warn: (members: object, text: string) => void;

  constructor({ url, headers, clock, logger }: OtelTracerOptions) {
    this.#clock = clock;
    this.#logger = logger;
    const exporter = new OTLPTraceExporter({ url: url.href, ...(headers && { headers: parseKeyPairsIntoRecord(headers) }) });
    // Ended spans wait here, and not once more with the SDK.
    const processor = new BatchSpanProcessor(exporter, { scheduledDelayMillis: 0 });
    const own = resourceFromAttributes({
      'service.name': 'muster',
      'service.version': VERSION,
      'service.instance.id': `${process.pid}-${clock.now()}`,
    });
    const resource = own.merge(detectResources({ detectors: [envDetector] }));
    this.#provider = new BasicTracerProvider({ resource, spanProcessors: [processor], idGenerator: this.#ids });
    const spans = this.#provider.getTracer('muster', VERSION);
    this.#notes = new SpanNotes(clock, this.#ids, spans, getNumberFromEnv('OTEL_BSP_MAX_QUEUE_SIZE'));
    const wait = Math.max(SHORTEST_WAIT_MS, getNumberFromEnv('OTEL_BSP_SCHEDULE_DELAY') ?? WAIT_MS);
    this.#sending = new PeriodicTask(wait, async () => this.#notes.makeAll());
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
    this.#sending.start();
    setTracer(this);
  }

  /** Sends the spans that have ended. A collector that does not answer keeps no process alive. */
  async stop(): Promise<void> {
    setTracer(undefined);
    await this.#sending.stop();
    this.#notes.makeAll();
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
    diag.disable();
  }

  openRun(run: TracedRun): RunTrace {
    return new OtelRunTrace(this.#notes, run);
  }
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
