import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import { connectionFailure } from '../../core/connection-failure.js';
import type { Target } from './no-proxy.js';
import { hostAndPort, nameOfProxy, type Proxy } from './proxies.js';

/** The proxy did not connect to the target, and nothing was sent there. The message names the proxy by host and port. */
export class ProxyFailure extends Error {
  readonly code: 'PROXY_UNREACHABLE' | 'PROXY_NO_ANSWER' | 'PROXY_AUTHENTICATION' | 'PROXY_REFUSED';

  constructor(code: ProxyFailure['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Opens a connection to the target through the proxy, by CONNECT. Calls `done` once, with the socket or a ProxyFailure. */
export function openTunnel(
  proxy: Proxy,
  target: Target,
  timeoutMs: number,
  done: (...result: [error: ProxyFailure] | [error: null, socket: Socket]) => void,
): void {
  const { isTls, hostname: host, port, authorization } = proxy;
  const path = hostAndPort(target.hostname, target.port);
  const connect = (isTls ? httpsRequest : httpRequest)({
    method: 'CONNECT',
    host,
    port,
    path,
    agent: false,
    headers: { host: path, 'user-agent': 'muster', ...(authorization && { 'proxy-authorization': authorization.reveal() }) },
  });
  let isDone = false;
  const end: typeof done = (...result) => {
    clearTimeout(timer);
    if (!isDone) done(...result);
    isDone = true;
  };
  const timer = setTimeout(() => connect.destroy(noAnswer(proxy, path, timeoutMs)), timeoutMs);
  connect.once('connect', ({ statusCode = 0 }, socket: Socket, head) => {
    if (statusCode >= 200 && statusCode < 300) {
      if (head.length > 0) socket.unshift(head);
      return end(null, socket);
    }
    socket.on('error', () => {}).destroy();
    end(refusal(proxy, path, statusCode));
  });
  connect.on('error', (error) => end(error instanceof ProxyFailure ? error : unreachable(proxy, error)));
  connect.end();
}

export function unreachable(proxy: Proxy, cause: unknown): ProxyFailure {
  const message = `the proxy ${nameOfProxy(proxy)} of ${proxy.variable} cannot be reached: ${connectionFailure(cause)}`;
  return new ProxyFailure('PROXY_UNREACHABLE', message, { cause });
}

/** The error for a request without the right user and password. */
export function authenticationFailure(proxy: Proxy): ProxyFailure {
  const { variable, authorization } = proxy;
  const what = authorization ? 'does not take the user and password' : 'wants a user and a password';
  const next = authorization ? `set them right in ${variable}` : `set ${variable} to http://user:password@host:port`;
  return new ProxyFailure('PROXY_AUTHENTICATION', `the proxy ${nameOfProxy(proxy)} ${what} (407); ${next}`);
}

function refusal(proxy: Proxy, target: string, status: number): ProxyFailure {
  if (status === 407) return authenticationFailure(proxy);
  const what = `the proxy ${nameOfProxy(proxy)} of ${proxy.variable} opens no way to ${target} (${status})`;
  return new ProxyFailure('PROXY_REFUSED', `${what}; ask its operator, or name the host in NO_PROXY`);
}

function noAnswer(proxy: Proxy, target: string, timeoutMs: number): ProxyFailure {
  const what = `the proxy ${nameOfProxy(proxy)} of ${proxy.variable} opened no way to ${target} within ${timeoutMs} ms`;
  return new ProxyFailure('PROXY_NO_ANSWER', what);
}
