import { Agent, buildConnector, type Dispatcher } from 'undici';
import { hostAndPort, type Proxies, type Proxy, portOf, withoutBrackets } from './proxies.js';
import { openTunnel, unreachable } from './tunnel.js';

const CONNECT_TIMEOUT_MS = 5_000;

// An https target is reached through a tunnel, which the connector opens. For an http target the connector opens a connection to the proxy itself,
// and `throughProxies` sends it requests with absolute URLs. An agent needs both.

/** Opens the connections of an agent. An error means that nothing was sent; it is a ProxyFailure if the proxy caused it. */
export function connectorThrough(proxies: Proxies, timeoutMs: number): buildConnector.connector {
  const dial = buildConnector({ timeout: timeoutMs });
  return (target, done) => {
    const { protocol, hostname, port } = target;
    const proxy = proxies.proxyFor(target);
    if (!proxy) return dial(target, done);
    if (protocol !== 'https:') return dialProxy(dial, proxy, done);
    const end = { hostname: withoutBrackets(hostname), port: portOf({ protocol, port }) };
    openTunnel(proxy, end, timeoutMs, (...[error, socket]) =>
      error ? done(error, null) : dial({ ...target, httpSocket: socket }, done),
    );
  };
}

function dialProxy(dial: buildConnector.connector, proxy: Proxy, done: buildConnector.Callback): void {
  const { isTls, hostname, port } = proxy;
  const address = { protocol: isTls ? 'https:' : 'http:', hostname, host: hostAndPort(hostname, port), port: String(port) };
  dial(address, (...[error, socket]) => (error ? done(unreachable(proxy, error), null) : done(null, socket)));
}

/** Wraps an agent whose connections `connectorThrough` opens, so that http requests are written for their proxy. */
export function throughProxies(agent: Dispatcher, proxies: Proxies): Dispatcher {
  if (!proxies.areSet) return agent;
  return agent.compose((dispatch) => (options, handler) => {
    const url = new URL(String(options.origin));
    const proxy = url.protocol === 'http:' ? proxies.proxyFor(url) : undefined;
    return dispatch(proxy ? { ...options, ...forProxy(proxy, url, options) } : options, handler);
  });
}

function forProxy({ authorization }: Proxy, { origin }: URL, { path, headers }: Dispatcher.DispatchOptions) {
  const credentials = authorization && { 'proxy-authorization': authorization.reveal() };
  return { path: `${origin}${path}`, headers: { ...(headers as Record<string, string>), ...credentials } };
}

/** Returns a `fetch` that uses the proxies, for libraries that take one. Node's own fetch does not accept an agent of another version of undici. */
export async function fetchThrough(proxies: Proxies): Promise<(url: string, init: object) => Promise<Response>> {
  const { fetch: undiciFetch } = await import('undici');
  const dispatcher = throughProxies(new Agent({ connect: connectorThrough(proxies, CONNECT_TIMEOUT_MS) }), proxies);
  return (url, init) => undiciFetch(url, { ...init, dispatcher }) as unknown as Promise<Response>;
}
