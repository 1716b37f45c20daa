/** The address at which a client on this machine reaches a server that listens on `host`. "Every interface" becomes the loopback. */
export function ownAddress(host: string, port: number): URL {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return new URL(`http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`);
}

/** The text of an address, ready for a path to be appended. */
export function withoutSlash(url: URL | string): string {
  return String(url).replace(/\/+$/, '');
}
