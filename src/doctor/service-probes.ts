import type { Clock } from '../core/clock.js';
import { withoutSlash } from '../core/own-address.js';
import { type ByEnvironment, mapEnvironments, type ProviderSettings } from '../core/provider-settings.js';
import type { HttpClient } from '../http/http-client.js';

/** What came back from one request without a token. */
export interface Probe {
  readonly url: URL;
  readonly status: number;
  /** The proxy that it came through, by host, port and variable; undefined where there was none. */
  readonly proxy: string | undefined;
  readonly ms: number;
  /** The clock of the server minus ours, to a second; undefined where it names no time. */
  readonly aheadMs: number | undefined;
}

/** The requests to one environment of the service: each is sent once, however many checks look at it. Rejects with ServiceError. */
export interface ServiceProbes {
  authority(): Promise<Probe>;
  api(): Promise<Probe>;
  /** Further hosts of the API, by their names in the catalogue. */
  readonly bases: Readonly<Record<string, () => Promise<Probe>>>;
}

/** A company that nobody has. */
const NOBODY = '00000000-0000-0000-0000-000000000000';

/**
 * Neither request carries a token or a secret: the authority is asked for its page of consent without saying for whom, the API for a company without an
 * access token. A right service refuses both.
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
  // The header leaves the fraction of its second out.
  const aheadMs = Number.isNaN(date) ? undefined : date + 500 - (sentAt + ms / 2);
  return { url, status, proxy: http.proxyFor(url), ms: Math.ceil(ms), aheadMs };
}

function once<T>(work: () => Promise<T>): () => Promise<T> {
  let begun: Promise<T> | undefined;
  return () => (begun ??= work());
}
