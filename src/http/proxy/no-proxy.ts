import { BlockList, isIP } from 'node:net';

/** Host and port of a URL. */
export interface Target {
  /** In lower case, IPv6 without brackets. */
  readonly hostname: string;
  readonly port: number;
}

/** Whether a target is reached without a proxy. */
export type NoProxyRule = (target: Target) => boolean;

const HOST_AND_PORT = /^(\[[\da-f:.]+\]|[^:\s/]+)(?::(\d{1,5}))?$/i;
const RANGE = /^\[?([\da-f:.]+)\]?\/(\d{1,3})$/i;

/**
 * Reads one entry of NO_PROXY by the rules of curl: `*`; a host, which includes every host below it, with or without a leading dot or `*.`;
 * an IP address; a range of addresses (`10.0.0.0/8`). As in most programs, each but a range may name a port. Undefined for anything else.
 */
export function readNoProxyEntry(entry: string): NoProxyRule | undefined {
  if (entry === '*') return () => true;
  const [, start, length] = RANGE.exec(entry) ?? [];
  if (start !== undefined) return rangeRule(start, Number(length));
  const [, written = '', port] = HOST_AND_PORT.exec(isIP(entry) === 6 ? `[${entry}]` : entry) ?? [];
  const host = written
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/^\*?\./, '')
    .replace(/\.$/, '')
    .toLowerCase();
  if (host === '' || host.includes('*')) return undefined;
  const isHost = isIP(host) ? addressRule(host) : nameRule(host);
  return port === undefined ? isHost : (target) => target.port === Number(port) && isHost(target);
}

function nameRule(host: string): NoProxyRule {
  return ({ hostname }) => {
    const name = hostname.replace(/\.$/, '');
    return name === host || name.endsWith(`.${host}`);
  };
}

/** A range rule, because an IPv6 address has several spellings. */
function addressRule(host: string): NoProxyRule {
  return rangeRule(host, isIP(host) === 6 ? 128 : 32)!;
}

function rangeRule(start: string, length: number): NoProxyRule | undefined {
  const family = isIP(start) === 6 ? 'ipv6' : 'ipv4';
  if (isIP(start) === 0 || length > (family === 'ipv6' ? 128 : 32)) return undefined;
  const list = new BlockList();
  list.addSubnet(start, length, family);
  return ({ hostname }) => isIP(hostname) !== 0 && list.check(hostname, isIP(hostname) === 6 ? 'ipv6' : 'ipv4');
}
