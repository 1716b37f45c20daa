import type { ApiCall } from '../../api/plumbing/in-process-api.js';

export interface PageRequest {
  /** Calls the API for the viewer. Throws the problem that the API returns. */
  readonly ask: <T>(path: ApiCall['path']) => Promise<T>;
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
}

/** A file that a link of a page gives. */
export interface Download {
  /** Letters, digits, dots, dashes and underscores. */
  readonly name: string;
  readonly type: string;
  readonly text: string;
}
