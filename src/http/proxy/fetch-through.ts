import { Agent } from 'undici';
import type { Proxies } from './proxies.js';
import { connectorThrough, throughProxies } from './through-proxies.js';

const CONNECT_TIMEOUT_MS = 5_000;

/** `fetch`, for libraries that take one, by the ways out that were set. Node's own would not take an agent of another version of undici. */
export async function fetchThrough(proxies: Proxies): Promise<(url: string, init: object) => Promise<Response>> {
  const { fetch: undiciFetch } = await import('undici');
  const dispatcher = throughProxies(new Agent({ connect: connectorThrough(proxies, CONNECT_TIMEOUT_MS) }), proxies);
  return (url, init) => undiciFetch(url, { ...init, dispatcher }) as unknown as Promise<Response>;
}
