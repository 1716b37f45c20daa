import type { HttpResponse } from '../http-client.js';

/** Who asks: requests of a kind take turns by company. */
export interface Requester {
  readonly company: string;
  /** A person waits for it. Such requests go first; the others never stand still for them. */
  readonly urgent: boolean;
}

/** One request that may leave now. One of the three must be called, once. */
export interface Permit {
  /** Milliseconds that it was waited for. */
  readonly waitedMs: number;
  answered(response: Pick<HttpResponse, 'status' | 'headers'>): void;
  /** No answer came. */
  failed(error: unknown): void;
  /** It never left. */
  unused(): void;
}

/** What an environment's API may be asked for. */
export interface RequestBudget {
  /**
   * Resolves when the request may leave. Throws the signal's reason when it aborts; ServiceError `service_throttled`, with the time to
   * wait, while the service wants to be left alone for long; `database_unavailable`.
   */
  admit(requester: Requester, signal?: AbortSignal): Permit | Promise<Permit>;
}

const ALWAYS: Permit = { waitedMs: 0, answered: () => {}, failed: () => {}, unused: () => {} };

/** Lets every request leave at once: for what needs no budget. */
export const UNBOUNDED: RequestBudget = { admit: () => ALWAYS };
