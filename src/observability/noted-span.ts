import { type HrTime, ROOT_CONTEXT, type Span, SpanStatusCode, type Tracer as Spans, trace } from '@opentelemetry/api';
import { millisToHrTime } from '@opentelemetry/core';
import { type IdGenerator, RandomIdGenerator } from '@opentelemetry/sdk-trace-base';
import type { Clock } from '../core/clock.js';
import { ERROR_CODES, type MusterError } from '../core/errors.js';
import type { SpanAttributes, TraceIds, WorkSpan } from './tracing.js';

/** Spans that are made together, at most: as many as OpenTelemetry sends with one request. */
const TOGETHER = 512;

export interface SpanStart {
  readonly name: string;
  /** Drawn when the span is made, unless given. */
  readonly ids?: TraceIds;
  readonly parent?: NotedSpan;
  /** Now, unless given. */
  readonly startedAt?: Date;
  readonly attributes?: SpanAttributes;
}

/** A span that OpenTelemetry does not know yet: what is noted of it while the work goes on. */
export class NotedSpan implements WorkSpan {
  readonly ids: TraceIds | undefined;
  readonly #notes: SpanNotes;
  readonly #name: string;
  readonly #parent: NotedSpan | undefined;
  /** Milliseconds since the epoch. */
  readonly #startedAt: number;
  /** Milliseconds of `Clock.monotonic` at that moment, where the moment was not given. */
  readonly #began: number | undefined;
  readonly #attributes: SpanAttributes[] = [];
  #error: SpanAttributes | undefined;
  #receivedAt: number | undefined;
  #endedAt: number | undefined;
  #made: Span | undefined;

  constructor(notes: SpanNotes, { name, ids, parent, startedAt, attributes }: SpanStart) {
    this.ids = ids;
    this.#notes = notes;
    this.#name = name;
    this.#parent = parent;
    this.#startedAt = startedAt?.getTime() ?? notes.clock.now();
    this.#began = startedAt ? undefined : notes.clock.monotonic();
    if (attributes) this.#attributes.push(attributes);
  }

  /** Begins a span below. Its ids are drawn when it is made. */
  startChild(name: string): NotedSpan {
    return new NotedSpan(this.#notes, { name, parent: this });
  }

  add(attributes: SpanAttributes): void {
    this.#attributes.push(attributes);
  }

  /** Only the last of several answers counts. */
  received(): void {
    this.#receivedAt = this.#now();
  }

  /** A message may quote an address, and with it the id of a record, so only the code leaves the process. */
  fail(error: unknown): void {
    const { code: given = '', details } = (error ?? {}) as Partial<MusterError>;
    const status = details?.['status'];
    this.#error = {
      'error.type': given in ERROR_CODES ? given : 'internal_error',
      'http.response.status_code': typeof status === 'number' ? status : undefined,
    };
  }

  /** A second call does nothing. */
  end(): void {
    if (this.#endedAt !== undefined) return;
    this.#endedAt = this.#now();
    this.#notes.ended(this);
  }

  /** OpenTelemetry's span, as it began. */
  begin(): Span {
    this.#made ??= this.#notes.begin({
      name: this.#name,
      startTime: millisToHrTime(this.#startedAt),
      ids: this.ids,
      parent: this.#parent?.begin(),
    });
    return this.#made;
  }

  /** Makes OpenTelemetry's span whole, which sends it. */
  make(): void {
    const span = this.begin();
    // Members that are undefined are left out by it.
    for (const attributes of this.#attributes) span.setAttributes(attributes);
    if (this.#receivedAt !== undefined) span.addEvent('received', millisToHrTime(this.#receivedAt));
    if (this.#error) {
      span.setAttributes(this.#error);
      span.setStatus({ code: SpanStatusCode.ERROR, message: String(this.#error['error.type']) });
    }
    span.end(millisToHrTime(this.#endedAt!));
  }

  #now(): number {
    const { clock } = this.#notes;
    return this.#began === undefined ? clock.now() : this.#startedAt + clock.monotonic() - this.#began;
  }
}

/**
 * The spans that have ended and wait to be made. Between two spans all of Muster's code runs, so that OpenTelemetry's code and data have left the
 * processor's caches, and each call takes several times as long as in a loop. So the work notes a few members, and many spans are made of them together.
 */
export class SpanNotes {
  readonly clock: Clock;
  readonly #ids: GivenIds;
  readonly #spans: Spans;
  readonly #together: number;
  #ended: NotedSpan[] = [];

  /** `spans` takes its ids from `ids`, and drops some where more than `queue` wait to be sent. */
  constructor(clock: Clock, ids: GivenIds, spans: Spans, queue = TOGETHER) {
    this.clock = clock;
    this.#ids = ids;
    this.#spans = spans;
    this.#together = Math.min(TOGETHER, queue);
  }

  drawId(): string {
    return this.#ids.random.generateSpanId();
  }

  ended(span: NotedSpan): void {
    this.#ended.push(span);
    if (this.#ended.length >= this.#together) this.makeAll();
  }

  makeAll(): void {
    const spans = this.#ended;
    this.#ended = [];
    for (const span of spans) span.make();
  }

  begin({ name, startTime, ids, parent }: Beginning): Span {
    this.#ids.given = ids;
    return this.#spans.startSpan(name, { startTime }, parent ? trace.setSpan(ROOT_CONTEXT, parent) : ROOT_CONTEXT);
  }
}

interface Beginning {
  readonly name: string;
  readonly startTime: HrTime;
  readonly ids: TraceIds | undefined;
  readonly parent: Span | undefined;
}

/** Gives the span that is made next the ids that were given out for it, or draws some. */
export class GivenIds implements IdGenerator {
  readonly random = new RandomIdGenerator();
  given: TraceIds | undefined;

  generateTraceId(): string {
    return this.given?.trace_id ?? this.random.generateTraceId();
  }

  generateSpanId(): string {
    return this.given?.span_id ?? this.random.generateSpanId();
  }
}
