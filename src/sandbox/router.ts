import type { Answer } from './answer.js';

/** A request that reached its route. */
export interface Asked {
  readonly query: URLSearchParams;
  readonly contentType: string;
  readonly authorization: string | undefined;
  readonly body: string;
  /** From `{company_id}` in the path. */
  readonly companyId: string;
  /** Set by a fault: the most records to answer. */
  readonly clamp: number | undefined;
}

export interface Route {
  readonly method: 'GET' | 'POST';
  /** May hold `{company_id}`. */
  readonly path: string;
  handle(asked: Asked): Answer;
}

/** The route of a request and its company; `allowed` where only other methods fit the path. */
export type Found = { readonly route: Route; readonly companyId: string } | { readonly allowed: readonly string[] };

export function findRoute(routes: readonly Route[], method: string, path: string): Found {
  const allowed: string[] = [];
  for (const route of routes) {
    const companyId = match(route.path, path);
    if (companyId === undefined) continue;
    if (route.method === method) return { route, companyId };
    allowed.push(route.method);
  }
  return { allowed };
}

/** The company in the path ('' where the template has none), or undefined when the path does not fit. */
function match(template: string, path: string): string | undefined {
  const [head = '', tail] = template.split('{company_id}');
  if (tail === undefined) return path === template ? '' : undefined;
  if (!path.startsWith(head) || !path.endsWith(tail)) return undefined;
  const companyId = path.slice(head.length, path.length - tail.length);
  return companyId === '' || companyId.includes('/') ? undefined : companyId;
}

/** A body that is a JSON object, or undefined. */
export function readObject(body: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}
