import type { HttpResponse } from '../http-client.js';

/** The sender of a request. Requests of a kind take turns by company. */
export interface Requester {
  readonly company: string;
  /** A person waits for it. Urgent requests go first, but never starve the others. */
  readonly urgent: boolean;
  /** Called right before a request leaves, however long it waited. Throws if it must not leave any more. */
  readonly requireMayLeave?: () => void;
}

/** Permission to send one request now. Exactly one of the three functions must be called, once. */
export interface Permit {
  /** Milliseconds spent waiting for the permit. */
  readonly waitedMs: number;
  answered(response: Pick<HttpResponse, 'status' | 'headers'>): void;
  /** No response came. */
  failed(error: unknown): void;
  /** The request was never sent. */
  unused(): void;
}

/** Limits the requests to an environment's API. */
export interface RequestBudget {
  /**
   * Resolves when the request may be sent. Throws the signal's reason when it aborts; ServiceError `service_throttled`, with the time to
   * wait, while the service asks for a long pause; `database_unavailable`.
   */
  admit(requester: Requester, signal?: AbortSignal): Permit | Promise<Permit>;
}

const ALWAYS: Permit = { waitedMs: 0, answered: () => {}, failed: () => {}, unused: () => {} };

/** Admits every request at once. */
export const UNBOUNDED: RequestBudget = { admit: () => ALWAYS };
