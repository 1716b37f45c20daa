import { Secret } from '../../core/secret.js';
import type { NoProxyRule } from './no-proxy.js';

/** The address of a proxy in HTTPS_PROXY or HTTP_PROXY. */
export interface ProxyAddress {
  /** The connection to the proxy itself uses TLS. */
  readonly isTls: boolean;
  /** IPv6 without brackets. */
  readonly hostname: string;
  readonly port: number;
  /** Value of the header Proxy-Authorization; undefined if the address has no user. */
  readonly authorization?: Secret | undefined;
}

/** A proxy, and the variable that names it. */
export type Proxy = ProxyAddress & { readonly variable: 'HTTPS_PROXY' | 'HTTP_PROXY' };

interface ProxySettings {
  /** The proxy for https targets. */
  readonly https?: ProxyAddress | undefined;
  /** The proxy for http targets. */
  readonly http?: ProxyAddress | undefined;
  /** NO_PROXY. */
  readonly noProxy?: readonly NoProxyRule[] | undefined;
}

/** Reads the address of a proxy, or explains its fault. Without a scheme, `http://` is assumed, as in curl. */
export function readProxyAddress(text: string): ProxyAddress | { readonly problem: string } {
  const withScheme = /^[a-z][a-z\d+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  if (!URL.canParse(withScheme)) return { problem: 'must be the address of a proxy; encode special characters of a password' };
  const { protocol, hostname, port, username, password, pathname, search, hash } = new URL(withScheme);
  if (protocol !== 'http:' && protocol !== 'https:')
    return { problem: 'must begin with http:// or https://; other kinds of proxy, such as SOCKS, are not known' };
  if (hostname === '' || !['', '/'].includes(pathname) || search !== '' || hash !== '')
    return { problem: 'must end with the host and the port of the proxy' };
  const isTls = protocol === 'https:';
  const address = { isTls, hostname: withoutBrackets(hostname), port: portOf({ protocol, port }) };
  if (username === '' && password === '') return address;
  try {
    const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    return { ...address, authorization: new Secret(`Basic ${Buffer.from(pair).toString('base64')}`) };
  } catch {
    return { problem: 'must have the special characters of its user and password encoded: %25 for %, %40 for @' };
  }
}

/** Chooses the proxy of a request by the standard variables, read as curl reads them. */
export class Proxies {
  readonly #settings: ProxySettings;

  constructor(settings: ProxySettings = {}) {
    this.#settings = settings;
  }

  get areSet(): boolean {
    return this.#settings.https !== undefined || this.#settings.http !== undefined;
  }

  /** The proxy for this address; undefined if it is reached directly. */
  proxyFor({ protocol, hostname, port }: Pick<URL, 'protocol' | 'hostname' | 'port'>): Proxy | undefined {
    const { https, http, noProxy = [] } = this.#settings;
    const address = protocol === 'https:' ? https : http;
    if (!address) return undefined;
    const target = { hostname: withoutBrackets(hostname).toLowerCase(), port: portOf({ protocol, port }) };
    if (noProxy.some((rule) => rule(target))) return undefined;
    return { ...address, variable: protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY' };
  }

  /** A copy that reaches this address directly. */
  except({ protocol, hostname, port }: URL): Proxies {
    const own = { hostname: withoutBrackets(hostname).toLowerCase(), port: portOf({ protocol, port }) };
    const isOwn: NoProxyRule = (target) => target.hostname === own.hostname && target.port === own.port;
    return new Proxies({ ...this.#settings, noProxy: [...(this.#settings.noProxy ?? []), isOwn] });
  }
}

/** `proxy.example.com:3128`, the only part of a proxy's address that is shown. */
export function nameOfProxy({ hostname, port }: ProxyAddress): string {
  return hostAndPort(hostname, port);
}

/** The address in the form of CONNECT and of the header Host. */
export function hostAndPort(hostname: string, port: number): string {
  return `${hostname.includes(':') ? `[${hostname}]` : hostname}:${port}`;
}

export function portOf({ protocol, port }: Pick<URL, 'protocol' | 'port'>): number {
  return Number(port) || (protocol === 'https:' ? 443 : 80);
}

export function withoutBrackets(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}
