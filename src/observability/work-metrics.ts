import { AggregatorRegistry, Counter, Histogram, Registry } from 'prom-client';
import { ENVIRONMENTS, type Environment } from '../core/company.js';

/** A list without its company: labels must stay few. */
interface ListLabels {
  readonly environment: Environment;
  readonly resource: string;
}

/** How a request to the service ended: a status, or why none came. */
const REQUEST_OUTCOMES = ['2xx', '3xx', '4xx', '429', '5xx', 'timeout', 'unreachable', 'unreadable', 'aborted'] as const;
export type RequestOutcome = (typeof REQUEST_OUTCOMES)[number];

export interface RequestCounts {
  ended(outcome: RequestOutcome): void;
  /** `seconds`: from sending the request to the end of the answer. */
  pageCame(resource: string, seconds: number): void;
}

/** `failed`: an attempt, which may be tried again. */
type WalkEnd = 'verified' | 'unverified' | 'unavailable' | 'failed';

const HOUR = 3_600;
/** Seconds. A page takes 0.2 s or so, and REQUEST_TIMEOUT_SECONDS at most where the service is silent. */
const PAGE_BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
/** A list that is proved every night has a proof of 24 hours, and is late after 26 unless STALE_AFTER_HOURS says otherwise. */
const AGE_BUCKETS = [1, 6, 12, 20, 24, 25, 26, 28, 36, 48, 72, 168].map((hours) => hours * HOUR);

/**
 * The work that this process has done since it started, as metrics. They count in memory, so that no transaction is longer for it; work-counts.ts
 * stores them every few seconds, and every API process shows the sum over all processes. Labels are few and never name a company.
 */
export class WorkMetrics {
  readonly registry = new Registry();
  readonly #runs = this.#counter(
    'muster_runs_ended_total',
    'Runs that a worker has ended. A run that was cancelled or replaced while it waited is not among them.',
    ['environment', 'trigger', 'status'],
  );
  readonly #walks = this.#counter(
    'muster_walks_ended_total',
    'Walks of a list that have ended, and attempts at one that failed; attempts that end the whole run are in muster_runs_ended_total.',
    ['environment', 'resource', 'outcome'],
  );
  readonly #pages = this.#counter('muster_pages_total', 'Pages that were committed.', ['environment', 'resource']);
  readonly #records = this.#counter(
    'muster_records_received_total',
    'Records of these pages. A record that came twice counts twice.',
    ['environment', 'resource'],
  );
  readonly #written = this.#counter(
    'muster_records_written_total',
    'Records that were inserted, updated or deleted in the mirror.',
    ['environment', 'resource', 'change'],
  );
  readonly #requests = this.#counter('muster_service_requests_total', "Requests to the service's API, by how they ended.", [
    'environment',
    'outcome',
  ]);
  readonly #refreshes = this.#counter('muster_token_refreshes_total', 'Refreshes of tokens, by what the service answered.', [
    'environment',
    'outcome',
  ]);
  readonly #deliveries = this.#counter('muster_webhook_deliveries_total', 'Attempts to deliver a notification.', ['outcome']);
  readonly #pageDuration = this.#histogram(
    'muster_page_duration_seconds',
    'Time from sending the request for a page to the end of its answer, for pages that came.',
    PAGE_BUCKETS,
  );
  readonly #proofAge = this.#histogram(
    'muster_proof_age_seconds',
    'Age of the proof of a list when the next one replaced it.',
    AGE_BUCKETS,
  );

  /** `environments`: those that are configured. Their counters without a resource begin at 0, so that the first event is a rise. */
  constructor(environments: readonly Environment[] = ENVIRONMENTS) {
    for (const environment of environments) {
      for (const outcome of REQUEST_OUTCOMES) this.#requests.inc({ environment, outcome }, 0);
      for (const outcome of ['granted', 'refused']) this.#refreshes.inc({ environment, outcome }, 0);
      for (const status of ['succeeded', 'failed']) this.#runs.inc({ environment, trigger: 'nightly', status }, 0);
    }
    for (const outcome of ['delivered', 'failed']) this.#deliveries.inc({ outcome }, 0);
  }

  runEnded({ environment, trigger, status }: { environment: Environment; trigger: string; status: string }): void {
    this.#runs.inc({ environment, trigger, status });
  }

  walkEnded({ environment, resource }: ListLabels, outcome: WalkEnd): void {
    this.#walks.inc({ environment, resource, outcome });
  }

  /** `received` counts the records of the pages. */
  pagesCommitted(
    { environment, resource }: ListLabels,
    { pages, received, inserted, updated }: Readonly<Record<'pages' | 'received' | 'inserted' | 'updated', number>>,
  ): void {
    this.#pages.inc({ environment, resource }, pages);
    this.#records.inc({ environment, resource }, received);
    this.#written.inc({ environment, resource, change: 'inserted' }, inserted);
    this.#written.inc({ environment, resource, change: 'updated' }, updated);
  }

  recordsDeleted({ environment, resource }: ListLabels, deleted: number): void {
    this.#written.inc({ environment, resource, change: 'deleted' }, deleted);
  }

  /** Counts the requests to the API of an environment. */
  requestsOf(environment: Environment): RequestCounts {
    return {
      ended: (outcome) => this.#requests.inc({ environment, outcome }),
      pageCame: (resource, seconds) => this.#pageDuration.observe({ environment, resource }, seconds),
    };
  }

  /** `outcome`: the kind of the token endpoint's answer. */
  tokenRefreshed(environment: Environment, outcome: string): void {
    this.#refreshes.inc({ environment, outcome });
  }

  webhookAsked(outcome: 'delivered' | 'failed'): void {
    this.#deliveries.inc({ outcome });
  }

  /** `ageSeconds`: of the proof before. */
  proofReplaced({ environment, resource }: ListLabels, ageSeconds: number): void {
    this.#proofAge.observe({ environment, resource }, Math.max(0, ageSeconds));
  }

  /** Counts from 0 again. */
  reset(): void {
    this.registry.resetMetrics();
  }

  #counter(name: string, help: string, labelNames: string[]): Counter {
    return new Counter({ name, help, labelNames, registers: [this.registry] });
  }

  #histogram(name: string, help: string, buckets: number[]): Histogram {
    return new Histogram({ name, help, buckets, labelNames: ['environment', 'resource'], registers: [this.registry] });
  }
}

type MetricsAsJson = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

/** Gives all that a registry has counted as JSON, for `sumCounts`. The help is left out: it is the code's. */
export async function countsOf(registry: Registry): Promise<string> {
  const metrics = await registry.getMetricsAsJSON();
  return JSON.stringify(metrics, (member, value: unknown) => (member === 'help' ? undefined : value));
}

/** Adds up what `countsOf` gave, as it was parsed. */
export function sumCounts(counts: readonly unknown[]): Registry {
  return AggregatorRegistry.aggregate(counts.map((each) => each as MetricsAsJson));
}
