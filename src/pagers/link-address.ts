import { valueAt } from './fields.js';

/** Why a link is not followed. */
export type LinkFault = { readonly kind: 'no_address' } | { readonly kind: 'other_host'; readonly host: string };

/**
 * Path and query of a link on the API's own origin, on which it is asked for: the access token goes nowhere else. The link must be of the host that
 * was asked, under whatever scheme and port, since TLS may end at a proxy; or of one of `hosts`. It may be relative to `base`.
 */
export function pathOfLink(
  link: string,
  { url, base = url, hosts }: { readonly url: string; readonly base?: string; readonly hosts: readonly string[] },
): string | LinkFault {
  // A link that is a query alone is of the address that was asked: the context of OData has another path.
  const address = addressOf(link, link.startsWith('?') ? url : base);
  if (address === undefined) return { kind: 'no_address' };
  if (!isOfApi(address, url, hosts)) return { kind: 'other_host', host: address.host };
  return address.pathname + address.search;
}

/**
 * The address to which links in the members of an answer are relative: in OData that of its context (JSON Format 4.01, 4.5.1), else the one that was asked. A context
 * of another host says nothing of where the API is: a proxy may stand before it.
 */
export function baseOfLinks(rest: unknown, url: string, hosts: readonly string[]): string {
  const context = valueAt(rest, '@odata.context') ?? valueAt(rest, '@context');
  const address = typeof context === 'string' ? addressOf(context, url) : undefined;
  return address !== undefined && isOfApi(address, url, hosts) ? address.href : url;
}

/** A host of `pager.hosts` as it is compared, in lower case and ASCII, with its port where it names one; undefined where it is none. */
export function hostNamed(written: string): string | undefined {
  if (/[\s/\\?#@*]/.test(written)) return undefined;
  const address = addressOf(`https://${written}`, undefined);
  const [, port] = /:(\d+)$/.exec(written) ?? [];
  return address && nameOf(address) + (port === undefined ? '' : `:${Number(port)}`);
}

function isOfApi(address: URL, url: string, hosts: readonly string[]): boolean {
  const name = nameOf(address);
  const port = address.port || (address.protocol === 'https:' ? '443' : '80');
  return name === nameOf(new URL(url)) || hosts.includes(name) || hosts.includes(`${name}:${port}`);
}

/** A name that ends in a dot is the same one. */
function nameOf({ hostname }: URL): string {
  return hostname.replace(/\.$/, '');
}

function addressOf(text: string, base: string | undefined): URL | undefined {
  const address = URL.canParse(text, base) ? new URL(text, base) : undefined;
  return address && /^https?:$/.test(address.protocol) && address.hostname !== '' ? address : undefined;
}
