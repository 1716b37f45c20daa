import type { Clock } from '../core/clock.js';
import { withoutSlash } from '../core/own-address.js';
import { type ByEnvironment, mapEnvironments, type ProviderSettings } from '../core/provider-settings.js';
import type { HttpClient } from '../http/http-client.js';

/** The response to one request without a token. */
export interface Probe {
  readonly url: URL;
  readonly status: number;
  /** The proxy that it came through, by host, port and variable; undefined where there was none. */
  readonly proxy: string | undefined;
  readonly ms: number;
  /** The clock of the server minus ours, to a second; undefined where it names no time. */
  readonly aheadMs: number | undefined;
}

/** Requests to one environment of the service. Each is sent once, and all checks share its response. Rejects with ServiceError. */
export interface ServiceProbes {
  authority(): Promise<Probe>;
  api(): Promise<Probe>;
  /** Further hosts of the API, by their names in the catalogue. */
  readonly bases: Readonly<Record<string, () => Promise<Probe>>>;
}

/** No company has this id. */
const NOBODY = '00000000-0000-0000-0000-000000000000';

/**
 * No request carries a token or a secret: one asks the authority for its consent page without parameters, the others ask the API for a company. A
 * service that works refuses both.
 */
export function serviceProbes(
  http: HttpClient,
  providers: ByEnvironment<ProviderSettings>,
  clock: Clock,
): ByEnvironment<ServiceProbes> {
  const api = (root: URL) => once(() => probe(http, new URL(`${withoutSlash(root)}/api/companies/${NOBODY}`), clock));
  return mapEnvironments(providers, ({ authUrl, baseUrl, bases = {} }) => ({
    authority: once(() => probe(http, new URL(`${withoutSlash(authUrl)}/auth/authorize`), clock)),
    api: api(baseUrl),
    bases: Object.fromEntries(Object.entries(bases).map(([name, root]) => [name, api(root)])),
  }));
}

async function probe(http: HttpClient, url: URL, clock: Clock): Promise<Probe> {
  const [sentAt, begin] = [clock.now(), clock.monotonic()];
  const { status, headers } = await http.send({ method: 'GET', url, freshConnection: true });
  const ms = clock.monotonic() - begin;
  const date = Date.parse(headers['date'] ?? '');
  // The header is cut to whole seconds.
  const aheadMs = Number.isNaN(date) ? undefined : date + 500 - (sentAt + ms / 2);
  return { url, status, proxy: http.proxyFor(url), ms: Math.ceil(ms), aheadMs };
}

function once<T>(work: () => Promise<T>): () => Promise<T> {
  let begun: Promise<T> | undefined;
  return () => (begun ??= work());
}
