// Traces (docs/tracing.md): one for each run, with a span for each of its lists and each page, and one for each attempt. The rest of the code knows only
// this file. Without an endpoint there is no tracer: nothing of OpenTelemetry is loaded, and each function returns at once.

/** Attributes of a span. Undefined members are left out. Never a token, a text of the service, an address or the id of a record. */
export type SpanFacts = Readonly<Record<string, string | number | boolean | undefined>>;

/**
 * A run or list as its trace shows it. Several processes may work on it one after the other, so the ids of its span are made of its own, and only the
 * process that ends it sends its span.
 */
export interface TracedWork {
  /** A UUID. That of a run is the id of its trace, too. */
  readonly id: string;
  readonly startedAt: Date;
  readonly facts: SpanFacts;
}

/** `lists`: those that were begun and have not ended. */
export interface TracedRun extends TracedWork {
  readonly lists: readonly TracedWork[];
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
  inList<T>(list: TracedWork, work: () => Promise<T>, isOver: (result: T) => boolean): Promise<T>;
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

/** Does the work in the span `attempt` of the run's trace. The span `run` around it is sent by `endRun`, once. */
export function inRun<T>(run: TracedRun, attempt: SpanFacts, work: () => Promise<T>): Promise<T> {
  return tracer ? tracer.inRun(run, attempt, work) : work();
}

/** Does the work in the span of a list of the active run. The span is sent once the list is over, or the run. */
export function inList<T>(list: TracedWork, work: () => Promise<T>, isOver: (result: T) => boolean): Promise<T> {
  return tracer ? tracer.inList(list, work, isOver) : work();
}

/** Adds to the active span. */
export function addToSpan(facts: SpanFacts): void {
  tracer?.addToSpan(facts);
}

/** Marks the active span as failed, with the code of the error and no word of its message: the log has that, with the same ids. */
export function failSpan(error: unknown): void {
  tracer?.failSpan(error);
}

/** Sends the span of the active run, and the spans of its lists that have not ended: no process will work on them any more. */
export function endRun(facts: SpanFacts, error?: unknown): void {
  tracer?.endRun(facts, error);
}

/** Sends these spans for a run that ended while no worker worked on it. */
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
