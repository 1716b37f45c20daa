import type { ApiCall } from '../../api/plumbing/in-process-api.js';

/** What a page is made from. */
export interface PageRequest {
  /** What the API answers to the person who looks at the page. Throws the problem that it answers. */
  readonly ask: <T>(path: ApiCall['path']) => Promise<T>;
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
}
