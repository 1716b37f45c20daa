// Traces (docs/tracing.md): one for each run, with a span for each attempt at it, each of its lists and each page. The rest of the code knows only
// this file. Without an endpoint there is no tracer: nothing of OpenTelemetry is loaded, and each function returns at once.

/** Attributes of a span. Undefined members are left out. Never a token, a text of the service, an address or the id of a record. */
export type SpanFacts = Readonly<Record<string, string | number | boolean | undefined>>;

/** A run as its trace shows it. Its id is the id of the trace, so that every process that works on it writes the same trace. */
export interface TracedRun {
  readonly id: string;
  readonly createdAt: Date;
  readonly facts: SpanFacts;
}

/** The span of a page: begins with its request. A page that the walk does not want after all has no span. */
export interface PageSpan {
  /** The request failed, and is repeated. */
  retried(): void;
  received(response: { readonly status: number; readonly bytes: Uint8Array }): void;
  end(facts: SpanFacts): void;
  fail(error: unknown): void;
}

/** Ids of the active span, as log lines carry them. */
export interface TraceIds {
  readonly trace_id: string;
  readonly span_id: string;
}

export interface Tracer {
  inRun<T>(run: TracedRun, attempt: SpanFacts, work: () => Promise<T>): Promise<T>;
  inSpan<T>(name: string, facts: SpanFacts, work: () => Promise<T>): Promise<T>;
  addToSpan(facts: SpanFacts): void;
  failSpan(error: unknown): void;
  endRun(facts: SpanFacts, error?: unknown): void;
  recordRun(run: TracedRun, facts: SpanFacts): void;
  startPage(): PageSpan;
  ids(): TraceIds | undefined;
}

let tracer: Tracer | undefined;

export function setTracer(next: Tracer | undefined): void {
  tracer = next;
}

/** Does the work in the span `attempt` of the run's trace. The span `run` around it is recorded by `endRun`, once. */
export function inRun<T>(run: TracedRun, attempt: SpanFacts, work: () => Promise<T>): Promise<T> {
  return tracer ? tracer.inRun(run, attempt, work) : work();
}

/** Does the work in a span below the active one. An error of the work ends the span, and only `failSpan` marks it as failed. */
export function inSpan<T>(name: string, facts: SpanFacts, work: () => Promise<T>): Promise<T> {
  return tracer ? tracer.inSpan(name, facts, work) : work();
}

/** Adds to the active span. */
export function addToSpan(facts: SpanFacts): void {
  tracer?.addToSpan(facts);
}

/** Marks the active span as failed, with the code of the error and no word of its message: the log has that, with the same ids. */
export function failSpan(error: unknown): void {
  tracer?.failSpan(error);
}

/** Records the span `run` of the active trace: the run has ended. */
export function endRun(facts: SpanFacts, error?: unknown): void {
  tracer?.endRun(facts, error);
}

/** Records the span `run` of a run that ended while no worker worked on it. */
export function recordRun(run: TracedRun, facts: SpanFacts): void {
  tracer?.recordRun(run, facts);
}

/** Begins the span of a page below the active one. */
export function startPage(): PageSpan | undefined {
  return tracer?.startPage();
}

/** Does the work in the span of a page, which ends with the facts of the result. */
export async function inPage<T>(work: (span: PageSpan | undefined) => Promise<T>, factsOf: (result: T) => SpanFacts): Promise<T> {
  const span = tracer?.startPage();
  if (!span) return work(undefined);
  try {
    const result = await work(span);
    span.end(factsOf(result));
    return result;
  } catch (error) {
    span.fail(error);
    throw error;
  }
}

export function traceIds(): TraceIds | undefined {
  return tracer?.ids();
}
