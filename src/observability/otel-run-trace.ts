import { NotedSpan, type SpanNotes } from './noted-span.js';
import type { ListSpan, PageSpan, RunTrace, SpanAttributes, TracedRun, TracedWork, WorkSpan } from './tracing.js';

/**
 * Each attempt begins the spans of the run and its lists again, so that the spans below have a parent and the sampler decides alike in all
 * processes. A span that is not ended is never sent. Ids of runs and lists outlive the process and are stored nowhere: they are made of the UUIDs.
 */
export class OtelRunTrace implements RunTrace {
  readonly #notes: SpanNotes;
  readonly #attributes: SpanAttributes;
  readonly #traceId: string;
  readonly #span: NotedSpan;
  readonly #lists = new Map<string, OtelListSpan>();

  constructor(notes: SpanNotes, { id, startedAt, attributes, lists }: TracedRun) {
    this.#notes = notes;
    this.#attributes = attributes;
    this.#traceId = hexOf(id);
    this.#span = new NotedSpan(notes, { name: 'run', ids: this.#idsOf(id), startedAt, attributes });
    for (const list of lists) this.list(list);
  }

  startAttempt(attributes: SpanAttributes): WorkSpan {
    const ids = { trace_id: this.#traceId, span_id: this.#notes.drawId() };
    return new NotedSpan(this.#notes, {
      name: 'attempt',
      ids,
      parent: this.#span,
      attributes: { ...this.#attributes, ...attributes },
    });
  }

  list({ id, startedAt, attributes }: TracedWork): ListSpan {
    let span = this.#lists.get(id);
    if (!span) {
      span = new OtelListSpan(this.#notes, { name: 'list', ids: this.#idsOf(id), parent: this.#span, startedAt, attributes });
      this.#lists.set(id, span);
    }
    return span;
  }

  end(attributes: SpanAttributes, error?: unknown): void {
    for (const list of this.#lists.values()) list.end();
    this.#span.add(attributes);
    if (error !== undefined) this.#span.fail(error);
    this.#span.end();
  }

  #idsOf(id: string) {
    return { trace_id: this.#traceId, span_id: hexOf(id).slice(0, 16) };
  }
}

class OtelListSpan extends NotedSpan implements ListSpan {
  startPage(): PageSpan {
    return new OtelPageSpan(this.startChild('page'));
  }
}

class OtelPageSpan implements PageSpan {
  readonly #span: NotedSpan;
  #retries = 0;

  constructor(span: NotedSpan) {
    this.#span = span;
  }

  retried(): void {
    this.#retries += 1;
  }

  received({ status, bytes }: { readonly status: number; readonly bytes: Uint8Array }): void {
    this.#span.add({ 'http.response.status_code': status, 'muster.page.bytes': bytes.length });
    this.#span.received();
  }

  end(attributes: SpanAttributes): void {
    if (this.#retries > 0) this.#span.add({ 'http.request.resend_count': this.#retries });
    this.#span.add(attributes);
    this.#span.end();
  }

  fail(error: unknown): void {
    this.#span.fail(error);
    this.end({});
  }
}

function hexOf(uuid: string): string {
  return uuid.replaceAll('-', '');
}
