// Traces (docs/tracing.md): one for each run, with a span for each of its lists and each page, and one for each attempt. The rest of the code knows only
// this file, and hands spans on as it hands on runs and lists. Without an endpoint there are none, and nothing of OpenTelemetry is loaded.

/** Attributes of a span. Undefined members are left out. Never a token, a text of the service, an address or the id of a record. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>;

/**
 * A run or list as its trace shows it. Several processes may work on it one after the other, so the ids of its span are made of its own, and only the
 * process that ends it sends its span.
 */
export interface TracedWork {
  /** A UUID. That of a run is the id of its trace, too. */
  readonly id: string;
  readonly startedAt: Date;
  readonly attributes: SpanAttributes;
}

/** `lists`: those that were begun and have not ended. */
export interface TracedRun extends TracedWork {
  readonly lists: readonly TracedWork[];
}

/** A span that is under way. */
export interface WorkSpan {
  /** Log lines about the work carry them. A page has none before it is sent. */
  readonly ids: TraceIds | undefined;
  add(attributes: SpanAttributes): void;
  /** Marks it as failed, with the code of the error and no word of its message: the log has that, with the same ids. */
  fail(error: unknown): void;
  end(): void;
}

export interface TraceIds {
  readonly trace_id: string;
  readonly span_id: string;
}

export interface ListSpan extends WorkSpan {
  startPage(): PageSpan;
}

/** The span of a page: begins with its request. A page that the walk does not want after all has no span. */
export interface PageSpan {
  /** The request failed, and is repeated. */
  retried(): void;
  received(response: { readonly status: number; readonly bytes: Uint8Array }): void;
  end(attributes: SpanAttributes): void;
  fail(error: unknown): void;
}

/** The trace of a run, as one process works on it. */
export interface RunTrace {
  startAttempt(attributes: SpanAttributes): WorkSpan;
  /** The span of one of its lists, sent once that ends, or the run. */
  list(list: TracedWork): ListSpan;
  /** Sends the span of the run, and the spans of its lists that have not ended: no process will work on them any more. */
  end(attributes: SpanAttributes, error?: unknown): void;
}

export interface Tracer {
  openRun(run: TracedRun): RunTrace;
}

let tracer: Tracer | undefined;

export function setTracer(next: Tracer | undefined): void {
  tracer = next;
}

/** The trace of a run that this process works on or has ended. */
export function traceRun(run: TracedRun): RunTrace | undefined {
  return tracer?.openRun(run);
}

/** Does the work in the span of a page, which ends with the number of its records. */
export async function inPage<Page extends { readonly records: readonly unknown[] }>(
  list: ListSpan | undefined,
  work: (span: PageSpan | undefined) => Promise<Page>,
): Promise<Page> {
  const span = list?.startPage();
  if (!span) return work(undefined);
  try {
    const page = await work(span);
    span.end({ 'muster.page.records': page.records.length });
    return page;
  } catch (error) {
    span.fail(error);
    throw error;
  }
}
