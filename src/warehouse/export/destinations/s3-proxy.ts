import { type ClientRequestArgs, Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent, type RequestOptions } from 'node:https';
import type { Duplex } from 'node:stream';
import type { S3Client } from '@aws-sdk/client-s3';
import { type Proxies, portOf, withoutBrackets } from '../../../http/proxy/proxies.js';
import { openTunnel } from '../../../http/proxy/tunnel.js';

const CONNECT_TIMEOUT_MS = 10_000;

/** Reaches targets by https through a tunnel, where a proxy is set for them. */
class TunnelAgent extends HttpsAgent {
  readonly #proxies: Proxies;

  constructor(proxies: Proxies) {
    super({ keepAlive: true, maxSockets: 50 });
    this.#proxies = proxies;
  }

  override createConnection(
    options: RequestOptions,
    done?: (error: Error | null, stream: Duplex) => void,
  ): Duplex | null | undefined {
    const { host, port } = options as ClientRequestArgs;
    const address = { protocol: 'https:', hostname: host ?? 'localhost', port: String(port ?? '') };
    const proxy = this.#proxies.proxyFor(address);
    if (!proxy) return super.createConnection(options, done);
    const target = { hostname: withoutBrackets(address.hostname), port: portOf(address) };
    openTunnel(proxy, target, CONNECT_TIMEOUT_MS, (...[error, socket]) => {
      if (error) done?.(error, undefined as never);
      else done?.(null, super.createConnection({ ...options, socket } as RequestOptions)!);
    });
    return undefined;
  }
}

/** Agents for the client's request handler. */
export function agentsThrough(proxies: Proxies): { httpAgent: HttpAgent; httpsAgent: HttpsAgent } {
  return { httpAgent: new HttpAgent({ keepAlive: true, maxSockets: 50 }), httpsAgent: new TunnelAgent(proxies) };
}

/** The members of a request that say where it is sent. */
interface Routed {
  protocol: string;
  hostname: string;
  port?: number | undefined;
  path: string;
  headers: Record<string, string>;
}

/** Sends requests by http to their proxy, for whole addresses, once they are signed. */
export function useForwardingProxy({ middlewareStack }: S3Client, proxies: Proxies): void {
  middlewareStack.add(
    (next) => (args) => {
      const request = args.request as Routed;
      const { protocol, hostname, port, path, headers } = request;
      const proxy = protocol === 'http:' ? proxies.proxyFor({ protocol, hostname, port: String(port ?? '') }) : undefined;
      if (!proxy) return next(args);
      const credentials = proxy.authorization && { 'proxy-authorization': proxy.authorization.reveal() };
      const routed: Routed = Object.assign(Object.create(Object.getPrototypeOf(request) as object) as Routed, request, {
        protocol: proxy.isTls ? 'https:' : 'http:',
        hostname: proxy.hostname,
        port: proxy.port,
        path: `http://${hostname}${port === undefined ? '' : `:${port}`}${path}`,
        headers: { ...headers, ...credentials },
      });
      return next({ ...args, request: routed });
    },
    { step: 'deserialize', priority: 'low', name: 'forwardingProxy' },
  );
}
