import { BlockList, isIP } from 'node:net';

/** A host as it stands in a URL, and its port as a number. */
export interface Target {
  /** In lower case, IPv6 without brackets. */
  readonly hostname: string;
  readonly port: number;
}

/** Whether a target is asked directly. */
export type NoProxyRule = (target: Target) => boolean;

const HOST_AND_PORT = /^(\[[\da-f:.]+\]|[^:\s/]+)(?::(\d{1,5}))?$/i;
const RANGE = /^\[?([\da-f:.]+)\]?\/(\d{1,3})$/i;

/**
 * One entry of NO_PROXY, by the rules of curl: `*`; a host, which stands for every host below it, too, with or without a dot or `*.` before
 * it; an IP address; a range of them (`10.0.0.0/8`). As in most programs, each but a range may name a port. Undefined where it is none of these.
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

/** One address has several spellings in IPv6. */
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
