/** Where a client on this machine finds what listens on `host`. "Every interface" is no address, and becomes the loopback. */
export function ownAddress(host: string, port: number): URL {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return new URL(`http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`);
}

/** The text of an address, ready to have a path put behind it. */
export function withoutSlash(url: URL | string): string {
  return String(url).replace(/\/+$/, '');
}
